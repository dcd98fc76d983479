-- The objects that an operation is the first to need, in its own row (see objects/bundle.rs). In `object_index`, the
-- number of such an object is the negative sequence number of the operation.
ALTER TABLE operation ADD COLUMN bundle BLOB;

-- A row of `object_recent` with a negative `first` holds the names of the bundles up to that operation, each with its
-- distance from it, in twelve bytes. The names of later bundles are only in the bundles.
INSERT INTO object_recent (first, names) SELECT -max(sequence), x'' FROM operation HAVING count(*) > 0;
