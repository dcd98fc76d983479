//! Takes objects out of bundles. The names must be sorted before ([`WriteTransaction::sort_recent`]).

use std::collections::{BTreeMap, HashMap};

use retake_model::content::ContentId;
use retake_model::object::NewObject;
use rusqlite::params;

use crate::log::queries::Queries;
use crate::objects::bundle::{Bundle, BundledObject, encode};
use crate::{StoreError, WriteTransaction};

/// Places of objects, divided into rows and bundles.
#[derive(Default)]
pub(crate) struct Places {
    /// Row number and name prefix.
    pub(crate) rows: Vec<(i64, i64)>,
    /// Name prefixes by the sequence number of the operation.
    pub(crate) bundles: BTreeMap<i64, Vec<i64>>,
}

impl Places {
    pub(crate) fn add(&mut self, prefix: i64, place: i64) {
        if place < 0 {
            self.bundles.entry(-place).or_default().push(prefix);
        } else {
            self.rows.push((place, prefix));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.bundles.values().map(Vec::len).sum::<usize>()
    }
}

impl Queries<'_> {
    /// The unpacked sizes of the objects in a bundle, by name prefix.
    pub(crate) fn bundled_sizes(&self, sequence: i64) -> Result<HashMap<i64, u64>, StoreError> {
        let bundle = self.bundle(sequence)?.unwrap_or_default();
        let bundle = Bundle::parse(&bundle);
        Ok(bundle
            .map(|bundle| bundle.sizes().map(|(name, size)| (name, size as u64)).collect())
            .unwrap_or_default())
    }
}

impl WriteTransaction<'_> {
    /// Removes the objects at these places. `secure_delete` overwrites the pages.
    pub(crate) fn remove_places(&self, places: &Places) -> Result<(), StoreError> {
        for &(number, prefix) in &places.rows {
            self.remove_object(number, prefix)?;
        }
        for (&sequence, prefixes) in &places.bundles {
            self.remove_from_bundle(sequence, &|object| prefixes.contains(&object.name))?;
        }
        Ok(())
    }

    /// Removes objects from the bundle of an operation; returns their unpacked size. Of a bundle that cannot be read,
    /// nothing stays.
    pub(crate) fn remove_from_bundle(
        &self,
        sequence: i64,
        removes: &dyn Fn(&BundledObject) -> bool,
    ) -> Result<u64, StoreError> {
        let Some(bytes) = self.bundle(sequence)? else { return Ok(0) };
        let Some(bundle) = Bundle::parse(&bytes) else {
            self.put_bundle(sequence, None)?;
            self.unindex_operation(sequence)?;
            return Ok(bytes.len() as u64);
        };
        let (removed, kept): (Vec<_>, Vec<_>) = bundle.all().into_iter().partition(|object| removes(object));
        if removed.is_empty() {
            return Ok(0);
        }
        self.rewrite_bundle(sequence, &kept)?;
        let mut size = 0;
        for object in removed {
            self.unindex_bundled(sequence, &object)?;
            size += object.bytes.map_or(0, |bytes| bytes.len() as u64);
        }
        Ok(size)
    }

    /// Removes the bundle of an operation that is about to go, and returns its intact objects.
    pub(crate) fn dissolve_bundle(&self, sequence: i64) -> Result<Vec<NewObject>, StoreError> {
        let Some(bytes) = self.bundle(sequence)? else { return Ok(Vec::new()) };
        self.put_bundle(sequence, None)?;
        let Some(bundle) = Bundle::parse(&bytes) else {
            self.unindex_operation(sequence)?;
            return Ok(Vec::new());
        };
        let objects = bundle.all();
        objects.iter().try_for_each(|object| self.unindex_bundled(sequence, object))?;
        Ok(objects.into_iter().filter_map(BundledObject::into_new).collect())
    }

    /// Writes a bundle again, with these objects. Those that cannot be unpacked are left out.
    pub(crate) fn rewrite_bundle(&self, sequence: i64, objects: &[BundledObject]) -> Result<(), StoreError> {
        let objects =
            objects.iter().filter_map(|object| Some((object.name, object.kind, object.bytes.as_deref()?)));
        let bundle = if objects.clone().next().is_some() { Some(encode(objects)?) } else { None };
        self.put_bundle(sequence, bundle)
    }

    fn put_bundle(&self, sequence: i64, bundle: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE operation SET bundle = ?2 WHERE sequence = ?1")?
            .execute(params![sequence, bundle])?;
        Ok(())
    }

    fn unindex_bundled(&self, sequence: i64, object: &BundledObject) -> Result<(), StoreError> {
        let id = object.bytes.as_ref().map(|bytes| ContentId::of(object.kind, bytes));
        for prefix in [Some(object.name), id.map(|id| id.prefix())].into_iter().flatten() {
            self.unindex(prefix, -sequence)?;
        }
        Ok(())
    }

    /// Removes all names of an operation from the sorted index, without knowing them.
    fn unindex_operation(&self, sequence: i64) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM object_index WHERE number = ?1")?.execute([-sequence])?;
        Ok(())
    }

    /// Deletes an object's own row and its name.
    pub(crate) fn remove_object(&self, number: i64, prefix: i64) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM object WHERE number = ?1")?.execute([number])?;
        self.unindex(prefix, number)
    }

    fn unindex(&self, prefix: i64, place: i64) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("DELETE FROM object_index WHERE prefix = ?1 AND number = ?2")?
            .execute(params![prefix, place])?;
        Ok(())
    }
}
