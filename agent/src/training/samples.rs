//! Where samples lie in the files, and in which order an epoch reads them.

use std::ops::Range;

use serde::Deserialize;

use super::spec::Spec;
use crate::native::random::Random;

/// Samples of one host; each takes some bytes of memory while an epoch lasts.
const MAX_SAMPLES: u64 = 1 << 28;
/// Set apart from the seeds of orders.
const SIZES_SEED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// How large samples are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SampleSizes {
    /// All alike; a file begins with one.
    Fixed {
        /// Of each.
        bytes: u64,
        /// Samples of one file.
        per_file: u64,
    },
    /// Normally distributed, and never below one step. They lie one after the other, so one that
    /// is larger than what is left of a file goes on in the next.
    Normal {
        /// Of the mean.
        mean: u64,
        /// Of the standard deviation.
        stdev: u64,
        /// All are multiples of this.
        step: u64,
        /// Of the sizes.
        seed: u64,
    },
}

/// A part of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// The file's number.
    pub file: u64,
    /// Where it begins there.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// The samples of all files, as if these were one.
#[derive(Debug)]
pub struct Samples {
    file_bytes: u64,
    count: u64,
    per_group: u64,
    places: Places,
}

#[derive(Debug)]
enum Places {
    Fixed {
        bytes: u64,
        per_file: u64,
    },
    /// Where each begins, and the end of the last.
    Drawn(Vec<u64>),
}

impl Samples {
    /// Those of a spec; a sentence where there are none, or too many.
    pub fn of(spec: &Spec) -> Result<Self, String> {
        let whole = spec.files.checked_mul(spec.file_bytes);
        let whole = whole.ok_or_else(|| format!("files is {}; that is too many.", spec.files))?;
        let (count, places) = match spec.samples {
            SampleSizes::Fixed { bytes, per_file } => {
                let fits = bytes > 0 && per_file > 0;
                if !fits || bytes.checked_mul(per_file).is_none_or(|all| all > spec.file_bytes) {
                    return Err(format!("{per_file} samples of {bytes} bytes fit in no file."));
                }
                (spec.files * per_file, Places::Fixed { bytes, per_file })
            }
            SampleSizes::Normal { mean, stdev, step, seed } => {
                if step == 0 || mean == 0 || whole / mean > MAX_SAMPLES {
                    return Err(format!("Samples of {mean} bytes in steps of {step} cannot be."));
                }
                let starts = drawn_starts(whole, (mean, stdev, step), seed ^ SIZES_SEED);
                (starts.len() as u64 - 1, Places::Drawn(starts))
            }
        };
        let per_group = spec.samples_per_group.max(1);
        if count > MAX_SAMPLES {
            return Err(format!("There are {count} samples; {MAX_SAMPLES} are the most."));
        }
        let samples = Self { file_bytes: spec.file_bytes, count, per_group, places };
        if samples.steps(spec) == 0 {
            return Err(format!(
                "{count} samples are no batch of {} for each of {} accelerators.",
                spec.batch, spec.accelerators
            ));
        }
        Ok(samples)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Steps of an epoch: whole batches of every accelerator.
    pub fn steps(&self, spec: &Spec) -> u64 {
        self.groups_of_each(spec) * self.per_group / u64::from(spec.batch)
    }

    fn groups_of_each(&self, spec: &Spec) -> u64 {
        self.count / self.per_group / u64::from(spec.accelerators)
    }

    /// The order of groups in an epoch, the same of all who ask.
    pub fn order(&self, spec: &Spec, epoch: u64) -> Vec<u32> {
        let mut groups: Vec<u32> = (0..(self.count / self.per_group) as u32).collect();
        let mut random = Random::new(spec.seed.wrapping_add(epoch.wrapping_mul(0x9e37_79b9)));
        for at in (1..groups.len()).rev() {
            groups.swap(at, random.next_below(at as u64 + 1) as usize);
        }
        groups
    }

    /// The parts of files that a batch wants, and their bytes; what follows on each other is one.
    pub fn parts_of_batch(
        &self,
        spec: &Spec,
        order: &[u32],
        accelerator: u32,
        batch: u64,
        parts: &mut Vec<FilePart>,
    ) {
        parts.clear();
        let first_group = u64::from(accelerator) * self.groups_of_each(spec);
        let mut open: Option<Range<u64>> = None;
        let begin = batch * u64::from(spec.batch);
        for place in begin..begin + u64::from(spec.batch) {
            let group = order[(first_group + place / self.per_group) as usize];
            let sample = u64::from(group) * self.per_group + place % self.per_group;
            let range = self.range(sample);
            open = match open.take() {
                Some(before) if before.end == range.start => Some(before.start..range.end),
                before => {
                    self.add_parts(before, parts);
                    Some(range)
                }
            };
        }
        self.add_parts(open, parts);
    }

    fn range(&self, sample: u64) -> Range<u64> {
        match &self.places {
            Places::Fixed { bytes, per_file } => {
                let start = sample / per_file * self.file_bytes + sample % per_file * bytes;
                start..start + bytes
            }
            Places::Drawn(starts) => starts[sample as usize]..starts[sample as usize + 1],
        }
    }

    fn add_parts(&self, range: Option<Range<u64>>, parts: &mut Vec<FilePart>) {
        let Some(range) = range else { return };
        let mut at = range.start;
        while at < range.end {
            let (file, offset) = (at / self.file_bytes, at % self.file_bytes);
            let bytes = (self.file_bytes - offset).min(range.end - at);
            parts.push(FilePart { file, offset, bytes });
            at += bytes;
        }
    }
}

/// Where samples begin that are drawn until the files are full.
fn drawn_starts(whole: u64, (mean, stdev, step): (u64, u64, u64), seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut starts = vec![0_u64];
    let mut end = 0_u64;
    loop {
        let angle = std::f64::consts::TAU * random.next_unit();
        let normal = (-2.0 * random.next_unit().ln()).sqrt() * angle.cos();
        let steps = ((mean as f64 + stdev as f64 * normal) / step as f64).round().max(1.0);
        end = end.saturating_add(steps as u64 * step);
        if end > whole {
            return starts;
        }
        starts.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::spec::tests::spec_with;
    use serde_json::json;

    fn samples_of(keys: &serde_json::Value) -> (Spec, Samples) {
        let spec = Spec::parse(spec_with(keys).to_string().as_bytes()).unwrap();
        let samples = Samples::of(&spec).unwrap();
        (spec, samples)
    }

    #[test]
    fn an_epoch_reads_every_sample_once_and_the_next_in_another_order() {
        let (spec, samples) = samples_of(&json!({}));
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        let order = samples.order(&spec, 0);
        for accelerator in 0..2 {
            for batch in 0..samples.steps(&spec) {
                samples.parts_of_batch(&spec, &order, accelerator, batch, &mut parts);
                assert!(parts.iter().all(|part| (part.offset, part.bytes) == (0, 8000)));
                files.extend(parts.iter().map(|part| part.file));
            }
        }
        files.sort_unstable();
        assert_eq!(files, (0..8).collect::<Vec<u64>>());
        assert_ne!(order, samples.order(&spec, 1));
        assert_eq!(order, samples.order(&spec, 0));
    }

    #[test]
    fn samples_that_follow_on_each_other_are_read_as_one() {
        let keys = json!({
            "samples": { "fixed": { "bytes": 1000, "per_file": 8 } }, "samples_per_group": 8,
            "batch": 6,
        });
        let (spec, samples) = samples_of(&keys);
        let order = samples.order(&spec, 0);
        let mut parts = Vec::new();
        samples.parts_of_batch(&spec, &order, 0, 1, &mut parts);
        let [first, second] = parts[..] else { panic!("{parts:?}") };
        assert_eq!((first.offset, first.bytes), (6000, 2000));
        assert_eq!((second.offset, second.bytes), (0, 4000));
        assert_eq!(samples.steps(&spec), 5);
    }

    #[test]
    fn drawn_sizes_fill_the_files_and_have_their_mean() {
        let (mean, stdev, step) = (1 << 20, 1 << 19, 4096);
        let keys = json!({
            "files": 2000, "file_bytes": mean,
            "samples": { "normal": { "mean": mean, "stdev": stdev, "step": step, "seed": 3 } },
        });
        let (spec, samples) = samples_of(&keys);
        assert!((1850..2100).contains(&samples.count()), "{}", samples.count());
        let Places::Drawn(starts) = &samples.places else { panic!() };
        let sizes: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let average = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance =
            sizes.iter().map(|size| (size - average).powi(2)).sum::<f64>() / sizes.len() as f64;
        assert!((variance.sqrt() / f64::from(stdev) - 1.0).abs() < 0.1, "{variance}");
        let mut parts = Vec::new();
        samples.parts_of_batch(&spec, &samples.order(&spec, 0), 1, 3, &mut parts);
        assert!(parts.iter().all(|part| part.offset + part.bytes <= mean), "{parts:?}");
    }

    #[test]
    fn too_few_samples_for_a_batch_are_told() {
        let spec = spec_with(&json!({ "batch": 5 }));
        let spec = Spec::parse(spec.to_string().as_bytes()).unwrap();
        assert!(Samples::of(&spec).unwrap_err().contains("8 samples"));
    }
}
