//! Every type that can be a property, at its extremes; and what is refused.

use std::fmt::Debug;

use super::*;

/// A value survives being written and read.
#[track_caller]
fn check<T: Field + PartialEq + Debug>(value: T, edm_type: EdmType) {
    let written = value.to_value("x").unwrap();
    assert_eq!(written.as_ref().map(Value::edm_type), Some(edm_type), "{value:?}");
    assert_eq!(T::from_value("x", written), Ok(value));
}

#[track_caller]
fn check_refused<T: Field + Debug>(value: Option<Value<'_>>, reason: &str) {
    let error = T::from_value("x", value).unwrap_err();
    assert_eq!((&*error.property, &*error.reason), ("x", reason));
}

#[test]
fn every_type_survives_at_its_extremes() {
    for text in ["", "'\"\\\0\u{10FFFF}", &"é".repeat(32_768)] {
        check(text.to_owned(), EdmType::String);
        check(Box::<str>::from(text), EdmType::String);
        check(Arc::<str>::from(text), EdmType::String);
        check(Cow::<'static, str>::Owned(text.to_owned()), EdmType::String);
        check(Some(text.to_owned()), EdmType::String);
    }
    macro_rules! integers {
        ($($type:ty: $edm:ident),*) => {$(
            check(<$type>::MIN, EdmType::$edm);
            check(<$type>::MAX, EdmType::$edm);
        )*};
    }
    integers!(i8: Int32, u8: Int32, i16: Int32, u16: Int32, i32: Int32, u32: Int64, i64: Int64);
    check(0u64, EdmType::Int64);
    check(i64::MAX as u64, EdmType::Int64);
    for double in [0.0, -0.0, f64::MIN, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NEG_INFINITY]
    {
        check(double, EdmType::Double);
    }
    for single in [0.0, f32::MIN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.1, f32::INFINITY] {
        check(single, EdmType::Double);
    }
    assert!(f64::from_value("x", f64::NAN.to_value("x").unwrap()).unwrap().is_nan());
    check(true, EdmType::Boolean);
    check(Vec::<u8>::new(), EdmType::Binary);
    check(vec![0, 0xFF], EdmType::Binary);
    check(vec![1u8].into_boxed_slice(), EdmType::Binary);
    for date in [DateTime::from_ticks(0), DateTime::MIN_STORED, DateTime::UNIX_EPOCH, DateTime::MAX] {
        check(date, EdmType::DateTime);
        let time = SystemTime::from_value("x", Some(Value::DateTime(date))).unwrap();
        check(time, EdmType::DateTime);
        assert_eq!(time.to_value("x").unwrap(), Some(Value::DateTime(date)));
        #[cfg(feature = "chrono")]
        check(
            chrono::DateTime::<chrono::Utc>::from_value("x", Some(Value::DateTime(date))).unwrap(),
            EdmType::DateTime,
        );
        #[cfg(feature = "time")]
        check(time::OffsetDateTime::from_value("x", Some(Value::DateTime(date))).unwrap(), EdmType::DateTime);
    }
    check(Guid([0; 16]), EdmType::Guid);
    check(Guid([0xFF; 16]), EdmType::Guid);
    #[cfg(feature = "uuid")]
    check(uuid::Uuid::max(), EdmType::Guid);
}

#[test]
fn what_a_type_cannot_hold_is_refused() {
    assert_eq!(
        (1u64 << 63).to_value("x").unwrap_err().reason,
        "9223372036854775808 is out of the range of Edm.Int64"
    );
    check_refused::<u8>(Some(Value::Int32(256)), "256 is out of the range of u8");
    check_refused::<u64>(Some(Value::Int64(-1)), "-1 is out of the range of u64");
    check_refused::<i32>(Some(Value::Int64(1 << 31)), "2147483648 is out of the range of i32");
    check_refused::<i32>(Some(Value::String("1".into())), "expected Edm.Int32, found Edm.String");
    check_refused::<i32>(Some(Value::Double(1.0)), "expected Edm.Int32, found Edm.Double");
    check_refused::<f64>(Some(Value::Int64((1 << 53) + 1)), "expected Edm.Double, found Edm.Int64");
    check_refused::<f32>(Some(Value::Double(1e300)), &format!("{} is out of the range of f32", 1e300));
    check_refused::<Vec<u8>>(Some(Value::String("AQID".into())), "expected Edm.Binary, found Edm.String");
    check_refused::<bool>(Some(Value::Int32(1)), "expected Edm.Boolean, found Edm.Int32");
    check_refused::<String>(None, "the entity does not have this property");
    check_refused::<Option<String>>(Some(Value::Int32(1)), "expected Edm.String, found Edm.Int32");
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(300_000_000_000);
    assert_eq!(far.to_value("x").unwrap_err().reason, "the instant is out of the range of Edm.DateTime");
    let ancient = SystemTime::UNIX_EPOCH - Duration::from_secs(70_000_000_000);
    assert_eq!(ancient.to_value("x").unwrap_err().reason, "the instant is out of the range of Edm.DateTime");
}

#[test]
fn values_without_metadata_are_read_from_their_text() {
    let text = |text: &'static str| Some(Value::String(text.into()));
    assert_eq!(i64::from_value("x", text("-9223372036854775808")), Ok(i64::MIN));
    assert_eq!(u32::from_value("x", text("4294967295")), Ok(u32::MAX));
    assert_eq!(f64::from_value("x", text("-Infinity")), Ok(f64::NEG_INFINITY));
    assert_eq!(f64::from_value("x", Some(Value::Int32(3))), Ok(3.0));
    assert_eq!(DateTime::from_value("x", text("1970-01-01T00:00:00Z")), Ok(DateTime::UNIX_EPOCH));
    assert_eq!(Guid::from_value("x", text("00000000-0000-0000-0000-000000000000")), Ok(Guid([0; 16])));
    check_refused::<i64>(text("soon"), "expected Edm.Int64, found Edm.String");
    check_refused::<DateTime>(text("soon"), "expected Edm.DateTime, found Edm.String");
}

#[test]
fn instants_lose_what_is_finer_than_a_tick_towards_the_past() {
    let check = |nanoseconds: i128, ticks: i64| {
        let expected = DateTime::UNIX_EPOCH.ticks().checked_add_signed(ticks).map(DateTime::from_ticks);
        assert_eq!(ticks_from_unix(nanoseconds).ok(), expected, "{nanoseconds}");
    };
    check(199, 1);
    check(200, 2);
    check(-1, -1);
    check(-100, -1);
    check(-101, -2);
    assert_eq!(ticks_from_unix(i128::MAX), Err(std::cmp::Ordering::Greater));
    assert_eq!(ticks_from_unix(i128::MIN), Err(std::cmp::Ordering::Less));
    assert_eq!(unix_nanoseconds(DateTime::UNIX_EPOCH), 0);
}
