//! Parses the query of a URL into the type of its route. A list is a repeated parameter: `?role=User&role=AI`.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor,
};

/// Parses a query. A repeated parameter is refused unless it is a list.
pub(super) fn from_str<T: DeserializeOwned>(query: &str) -> Result<T, String> {
    let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        serde_urlencoded::from_str(query).map_err(|error| error.to_string())?;
    let mut grouped: Vec<(Cow<'_, str>, Parameter<'_>)> = Vec::new();
    for (name, value) in pairs {
        match grouped.iter_mut().find(|(known, _)| *known == name) {
            Some((_, parameter)) => parameter.values.push(value),
            None => grouped.push((name.clone(), Parameter { name: name.into_owned(), values: vec![value] })),
        }
    }
    T::deserialize(MapDeserializer::new(grouped.into_iter())).map_err(|error: Error| error.to_string())
}

/// A parameter with all its values.
struct Parameter<'de> {
    name: String,
    values: Vec<Cow<'de, str>>,
}

impl<'de> Parameter<'de> {
    fn single(self) -> Result<Cow<'de, str>, Error> {
        let Self { name, mut values } = self;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(Error::custom(format_args!("duplicate field `{name}`"))),
        }
    }

    fn parse<T: FromStr<Err: Display>>(self) -> Result<T, Error> {
        self.single()?.parse().map_err(Error::custom)
    }
}

impl<'de> IntoDeserializer<'de, Error> for Parameter<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parse()?)
        })*
    };
}

impl<'de> Deserializer<'de> for Parameter<'de> {
    type Error = Error;

    parsed! {
        deserialize_bool visit_bool
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32 deserialize_u64 visit_u64
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32 deserialize_i64 visit_i64
        deserialize_f32 visit_f32 deserialize_f64 visit_f64
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.single()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { name, values } = self;
        let each = values.into_iter().map(|value| Parameter { name: name.clone(), values: vec![value] });
        visitor.visit_seq(SeqDeserializer::new(each))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(Variant(self.single()?))
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any i128 u128
    }
}

/// The value of an enum.
struct Variant<'de>(Cow<'de, str>);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Unit;

    fn variant_seed<S: serde::de::DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Unit), Error> {
        seed.deserialize(self.0.into_deserializer()).map(|variant| (variant, Unit))
    }
}

/// Enum variants carry no data.
struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: serde::de::DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Error> {
        Err(Error::custom("expected a plain value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("expected a plain value"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        Err(Error::custom("expected a plain value"))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        role: Vec<String>,
        limit: Option<usize>,
        text: Option<String>,
        #[serde(default)]
        flag: bool,
        #[serde(default)]
        kind: Kind,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        #[default]
        First,
        Second,
    }

    #[test]
    fn lists_are_repeated_parameters() {
        let read = |query: &str| from_str::<Sample>(query);
        let sample = |role: &[&str]| Sample {
            role: role.iter().map(ToString::to_string).collect(),
            limit: None,
            text: None,
            flag: false,
            kind: Kind::First,
        };
        assert_eq!(read(""), Ok(sample(&[])));
        assert_eq!(read("role=User"), Ok(sample(&["User"])));
        assert_eq!(read("role=Vendor+API&role=a%2Cb"), Ok(sample(&["Vendor API", "a,b"])));
        let all = Sample {
            limit: Some(3),
            text: Some("é".to_owned()),
            flag: true,
            kind: Kind::Second,
            ..sample(&[])
        };
        assert_eq!(read("limit=3&text=%C3%A9&flag=true&kind=second"), Ok(all));
        for bad in
            ["limit=3&limit=3", "text=a&text=b", "limit=x", "flag=maybe", "kind=third", "other=1", "limit=-1"]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
