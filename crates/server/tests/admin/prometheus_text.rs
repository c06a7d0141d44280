//! A strict parser of the text format, version 0.0.4, written from its description: what it accepts, Prometheus accepts.

use std::collections::{BTreeMap, HashSet};

pub type Labels = BTreeMap<String, String>;

#[derive(Debug)]
pub struct Sample {
    pub name: String,
    pub labels: Labels,
    pub value: f64,
}

/// All samples, or what is wrong with the text.
pub fn parse(text: &str) -> Result<Vec<Sample>, String> {
    if !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let (mut samples, mut families, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut family: Option<(String, String)> = None;
    let mut help: Option<String> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').ok_or("HELP without words")?;
            check_name(name)?;
            if words.trim().is_empty() || !families.insert(name.to_owned()) {
                return Err(format!("{name}: HELP is empty or comes twice"));
            }
            help = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or("TYPE without a type")?;
            if help.as_deref() != Some(name) || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(format!("{name}: TYPE {kind} does not follow its HELP"));
            }
            if kind == "counter" && !name.ends_with("_total") {
                return Err(format!("{name}: a counter ends with _total"));
            }
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let sample = read_sample(line)?;
            let (name, kind) = family.as_ref().ok_or("a sample before its family")?;
            let of_histogram = ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}"));
            let is_ours = match kind.as_str() {
                "histogram" => of_histogram.contains(&sample.name),
                _ => sample.name == *name,
            };
            if !is_ours {
                return Err(format!("{} stands among {name}", sample.name));
            }
            if !seen.insert((sample.name.clone(), sample.labels.clone())) {
                return Err(format!("{sample:?} comes twice"));
            }
            samples.push(sample);
        }
    }
    check_histograms(&samples)?;
    Ok(samples)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_start = |character: char| character.is_ascii_alphabetic() || character == '_' || character == ':';
    let is_name = name.starts_with(is_start)
        && name.chars().all(|character| is_start(character) || character.is_ascii_digit());
    if is_name { Ok(()) } else { Err(format!("'{name}' is no name")) }
}

fn read_sample(line: &str) -> Result<Sample, String> {
    let wrong = || format!("not a sample: {line}");
    let (head, value) = line.rsplit_once(' ').ok_or_else(wrong)?;
    let value = value.parse().map_err(|_| wrong())?;
    let Some((name, rest)) = head.split_once('{') else {
        check_name(head)?;
        return Ok(Sample { name: head.to_owned(), labels: Labels::new(), value });
    };
    check_name(name)?;
    let mut rest = rest.strip_suffix('}').ok_or_else(wrong)?;
    let mut labels = Labels::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").ok_or_else(wrong)?;
        check_name(label)?;
        let (mut text, mut characters) = (String::new(), after.char_indices());
        let end = loop {
            match characters.next().ok_or_else(wrong)? {
                (end, '"') => break end,
                (_, '\\') => match characters.next().ok_or_else(wrong)?.1 {
                    'n' => text.push('\n'),
                    escaped @ ('\\' | '"') => text.push(escaped),
                    _ => return Err(wrong()),
                },
                (_, character) => text.push(character),
            }
        };
        if labels.insert(label.to_owned(), text).is_some() {
            return Err(wrong());
        }
        rest = &after[end + 1..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').ok_or_else(wrong)?;
        }
    }
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// Buckets grow with their bounds, and the last one is the count.
fn check_histograms(samples: &[Sample]) -> Result<(), String> {
    let mut last: Option<(Labels, f64, f64)> = None;
    for sample in samples {
        if let Some(name) = sample.name.strip_suffix("_bucket") {
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le").ok_or("a bucket without le")?;
            let bound =
                if bound == "+Inf" { f64::INFINITY } else { bound.parse().map_err(|_| "no bound")? };
            if let Some((before, lower, count)) = &last
                && *before == labels
                && (*lower >= bound || *count > sample.value)
            {
                return Err(format!("{name}: the buckets do not grow at {bound}"));
            }
            last = Some((labels, bound, sample.value));
        } else if sample.name.ends_with("_count") {
            let is_sum = matches!(&last, Some((labels, bound, count))
                if *labels == sample.labels && bound.is_infinite() && *count == sample.value);
            if !is_sum {
                return Err(format!("{sample:?} is not the last bucket"));
            }
        }
    }
    Ok(())
}

/// The sum of the samples with this name that have all of these labels.
pub fn sum(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let has = |sample: &&Sample| {
        sample.name == name
            && labels
                .iter()
                .all(|(label, value)| sample.labels.get(*label).map(String::as_str) == Some(value))
    };
    samples.iter().filter(has).map(|sample| sample.value).sum()
}

#[test]
fn the_parser_is_strict() {
    let head = "# HELP a_total words\n# TYPE a_total counter\n";
    assert_eq!(
        parse(&format!("{head}a_total{{x=\"1,\\\"}}\",y=\"\"}} 2\n")).unwrap()[0].labels["x"],
        "1,\"}"
    );
    for wrong in [
        "a_total 1",
        "a_total x\n",
        "b_total 1\n",
        "a_total{x=1} 1\n",
        "a_total{x=\"1\"y=\"2\"} 1\n",
        "a_total{x=\"1\",x=\"2\"} 1\n",
        "a_total 1\na_total 1\n",
        "# HELP a_total again\n# TYPE a_total counter\n",
        "# HELP b words\n# TYPE b counter\n",
        "a b 1\n",
    ] {
        assert!(parse(&format!("{head}{wrong}")).is_err(), "{wrong}");
    }
}
