//! Values of parameters and columns.

/// A value of a parameter or of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl Value<'_> {
    /// Returns the words for the kind of this value.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a number",
            Self::Text(_) => "text",
            Self::Blob(_) => "bytes",
        }
    }
}

/// A type that can be a parameter.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// A type that a column can be read as.
pub(crate) trait FromValue: Sized {
    /// Converts a column's value. The error is the words for the expected kind.
    fn from_value(value: Value<'_>) -> Result<Self, &'static str>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (*self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for std::borrow::Cow<'_, str> {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl FromValue for String {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Text(text) => Ok(text.to_owned()),
            _ => Err("text"),
        }
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Blob(bytes) => Ok(bytes.to_vec()),
            _ => Err("bytes"),
        }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Blob(bytes) => bytes.try_into().map_err(|_| "bytes of another length"),
            _ => Err("bytes"),
        }
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl FromValue for f64 {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Real(number) => Ok(number),
            #[expect(
                clippy::cast_precision_loss,
                reason = "SQLite stores whole numbers as integers"
            )]
            Value::Integer(number) => Ok(number as f64),
            _ => Err("a number"),
        }
    }
}

impl ToValue for bool {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(i64::from(*self))
    }
}

impl FromValue for bool {
    fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
        match value {
            Value::Integer(number) => Ok(number != 0),
            _ => Err("a flag"),
        }
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                Value::Integer(i64::from(*self))
            }
        }

        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Result<Self, &'static str> {
                match value {
                    Value::Integer(number) => Self::try_from(number).map_err(|_| "a smaller integer"),
                    _ => Err("an integer"),
                }
            }
        }
    )*};
}
integers!(i64, i32, u32, u16);
