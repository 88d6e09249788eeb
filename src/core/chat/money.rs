//! Money: an amount of US dollars as an integer, so that sums are exact and do not depend on their order (decision
//! 0036).

use std::fmt::{self, Display};
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Picodollars in a dollar, as many digits as an amount has after the point.
const DOLLAR: i64 = 1_000_000_000_000;

/// Dollars that are beyond every amount of this type.
const BEYOND_ALL: f64 = 1e7;

/// The longest text of an amount that is read, in bytes.
const MAX_DECIMALS: usize = 30;

/// An amount of US dollars, in units of 10⁻¹² dollars. The largest is about 9.2 million dollars; a larger result is that
/// amount. In JSON it is text with decimals: `"2.5"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(i64);

/// A number that is no amount, because it is not a number (`NaN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAmount;

impl Usd {
    /// No dollars.
    pub const ZERO: Self = Self(0);

    /// An amount in units of 10⁻¹² dollars.
    pub const fn from_picodollars(picodollars: i64) -> Self {
        Self(picodollars)
    }

    /// The amount in units of 10⁻¹² dollars.
    pub const fn picodollars(self) -> i64 {
        self.0
    }

    /// The nearest floating-point number of dollars, for JSON and exporters. Calculate with the amounts instead.
    pub fn dollars(self) -> f64 {
        // A quotient is rounded twice if the amount has more than 53 bits.
        self.to_string().parse().unwrap_or_default()
    }

    /// The price of so many tokens, if this amount is the price of a million. A half of the unit is rounded up.
    #[must_use]
    pub fn per_million(self, tokens: u64) -> Self {
        saturated((i128::from(self.0) * i128::from(tokens) + 500_000).div_euclid(1_000_000))
    }
}

fn saturated(picodollars: i128) -> Usd {
    let nearest = picodollars.clamp(i64::MIN.into(), i64::MAX.into());
    Usd(i64::try_from(nearest).unwrap_or(i64::MAX))
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // A sum beyond the range stays the largest amount, so that a limit still ends the run (decision 0036).
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Usd {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Usd {
    type Output = Self;

    fn mul(self, count: u64) -> Self {
        saturated(i128::from(self.0) * i128::from(count))
    }
}

/// The amount that a person meant by a number of dollars: its shortest decimal form, rounded to twelve decimals. The
/// product with 10¹² would differ from it for large amounts.
impl TryFrom<f64> for Usd {
    type Error = NotAnAmount;

    fn try_from(dollars: f64) -> Result<Self, NotAnAmount> {
        let amount = unsigned(&dollars.abs().clamp(0.0, BEYOND_ALL).to_string())?;
        Ok(saturated(if dollars < 0.0 { -amount } else { amount }))
    }
}

/// Decimals as [`Usd`] shows them, rounded to twelve: `2.5`, `-0.000001`.
impl FromStr for Usd {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let is_decimal = text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || c == '.')
            && text.len() <= MAX_DECIMALS;
        let amount = unsigned(is_decimal.then_some(text).ok_or(NotAnAmount)?)?;
        Ok(saturated(if is_negative { -amount } else { amount }))
    }
}

/// The units of an amount in decimals without a sign.
fn unsigned(text: &str) -> Result<i128, NotAnAmount> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    // One more decimal than the unit has, to round by.
    let digits = format!("{whole}{decimals:0<13.13}");
    let tenths: i128 = digits.parse().map_err(|_| NotAnAmount)?;
    Ok((tenths + 5) / 10)
}

/// Dollars in decimals, exactly and without trailing zeros.
impl Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, dollar) = (self.0.unsigned_abs(), DOLLAR.unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        let decimals = format!("{:012}", amount % dollar);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{sign}{}", amount / dollar),
            decimals => write!(f, "{sign}{}.{decimals}", amount / dollar),
        }
    }
}

impl fmt::Debug for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dollars())
    }
}

impl Display for NotAnAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a number of US dollars")
    }
}

/// Text with decimals, because a number of JSON is a floating-point number for most of its readers.
impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From text with decimals, or from a number.
impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl de::Visitor<'_> for AmountVisitor {
    type Value = Usd;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of US dollars, such as 2.5 or \"2.5\"")
    }

    fn visit_f64<E: de::Error>(self, dollars: f64) -> Result<Usd, E> {
        Usd::try_from(dollars).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, dollars: u64) -> Result<Usd, E> {
        Ok(saturated(i128::from(dollars) * i128::from(DOLLAR)))
    }

    fn visit_i64<E: de::Error>(self, dollars: i64) -> Result<Usd, E> {
        Ok(saturated(i128::from(dollars) * i128::from(DOLLAR)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Usd, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(dollars: f64) -> Usd {
        Usd::try_from(dollars).unwrap()
    }

    fn through_json(amount: Usd) -> Usd {
        serde_json::from_str(&serde_json::to_string(&amount).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn a_sum_does_not_depend_on_its_order(a in 0..i64::MAX, b in 0..i64::MAX, c in 0..i64::MAX) {
            let [a, b, c] = [a, b, c].map(Usd::from_picodollars);
            prop_assert_eq!((a + b) + c, a + (b + c));
            prop_assert_eq!(a + b, b + a);
        }

        #[test]
        fn an_amount_survives_json(picodollars: i64) {
            let amount = Usd::from_picodollars(picodollars);
            prop_assert_eq!(through_json(amount), amount);
            let as_value = serde_json::to_value(amount).unwrap();
            prop_assert_eq!(serde_json::from_value::<Usd>(as_value).unwrap(), amount);
        }

        #[test]
        fn an_amount_shows_as_the_decimals_that_were_read(micros in 0..9_000_000_000_000_i64) {
            let decimals = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            let amount = Usd::from_picodollars(micros * 1_000_000);
            prop_assert_eq!(usd(decimals.parse().unwrap()), amount);
            prop_assert_eq!(amount.to_string(), decimals.trim_end_matches('0').trim_end_matches('.'));
        }

        #[test]
        fn tokens_counted_apart_cost_as_much_as_together(
            rate in 0..1_000_000_000_i64, some in 0..2_000_000_u64, more in 0..2_000_000_u64,
        ) {
            // A rate of whole microdollars per million tokens is a whole number of units per token.
            let rate = Usd::from_picodollars(rate * 1_000_000);
            prop_assert_eq!(rate.per_million(some) + rate.per_million(more), rate.per_million(some + more));
        }
    }

    #[test]
    fn ten_dimes_are_a_dollar() {
        let sum = std::iter::repeat_n(usd(0.1), 10).fold(Usd::ZERO, Usd::add);
        assert_eq!((sum, sum.to_string()), (usd(1.0), "1".to_owned()));
    }

    #[test]
    fn a_rate_is_exact_for_each_token() {
        assert_eq!(usd(0.001).per_million(1), Usd::from_picodollars(1_000));
        assert_eq!(usd(0.0375).per_million(1), Usd::from_picodollars(37_500));
        assert_eq!(Usd::from_picodollars(1).per_million(500_000), Usd::from_picodollars(1));
    }

    #[test]
    fn a_thirteenth_decimal_is_rounded() {
        assert_eq!(usd(0.000_000_000_001_49), Usd::from_picodollars(1));
        assert_eq!(usd(-0.000_000_000_001_5), Usd::from_picodollars(-2));
        assert_eq!(usd(1e-300), Usd::ZERO);
    }

    #[test]
    fn an_amount_beyond_the_range_is_the_largest() {
        let most = Usd::from_picodollars(i64::MAX);
        assert_eq!([1e300, f64::INFINITY].map(usd), [most; 2]);
        assert_eq!([usd(-1e300), most + usd(1.0), most * 2], [Usd::from_picodollars(i64::MIN), most, most]);
        assert_eq!(usd(9e6).per_million(u64::MAX), most);
    }

    #[test]
    fn only_numbers_are_amounts() {
        assert_eq!(Usd::try_from(f64::NAN), Err(NotAnAmount));
        for number in ["1", "1.0", "\"1\"", "\"1.00\""] {
            assert_eq!(serde_json::from_str::<Usd>(number).unwrap(), usd(1.0), "{number}");
        }
        for text in ["", "-", ".", "1.2.3", "1e3", "+1", " 1", "--1", "NaN", "1,5", "null", "٣"] {
            assert_eq!(text.parse::<Usd>(), Err(NotAnAmount), "{text}");
        }
    }
}
