//! The lines that reference scripts print for an accuracy, and that submission checkers search in `accuracy.txt`. Computes no accuracy.

/// Returns the line of `accuracy-imagenet.py` for a top-1 accuracy in percent.
#[must_use]
pub fn top1_line(percent: f64, good: usize, total: usize) -> String {
    format!("accuracy={percent:.3}%, good={good}, total={total}")
}

/// Returns the line of `accuracy-openimages.py` for a mean average precision in percent.
#[must_use]
pub fn map_line(percent: f64) -> String {
    format!("mAP={percent:.3}%")
}

/// Returns the line of `accuracy_kits.py` for the mean DICE and those of kidney and tumour, as fractions.
#[must_use]
pub fn dice_line(mean: f64, classes: &[f64]) -> String {
    let of = |class: usize| classes.get(class).copied().unwrap_or(f64::NAN);
    format!(
        "Accuracy: mean = {mean:.5}, kidney = {:.4}, tumor = {:.4}",
        of(0),
        of(1)
    )
}

/// Returns the line of `accuracy-squad.py` for the questions with an exact answer and the F1 in percent.
#[must_use]
pub fn squad_line(exact: usize, total: usize, f1: f64) -> String {
    let exact = 100.0 * exact as f64 / total as f64;
    format!("{{\"exact_match\": {exact:?}, \"f1\": {f1:?}}}")
}

/// Returns the line of `evaluation.py` for ROUGE-1, -2, -L and -Lsum in percent, the characters of all summaries and their number.
#[must_use]
pub fn rouge_line([one, two, longest, sum]: [f64; 4], characters: u64, summaries: u64) -> String {
    format!(
        "{{'rouge1': '{one:?}', 'rouge2': '{two:?}', 'rougeL': '{longest:?}', 'rougeLsum': '{sum:?}', 'gen_len': {characters}, \
         'gen_num': {summaries}}}"
    )
}

/// Returns the line of `accuracy_eval.py` for a word error rate as a fraction.
#[must_use]
pub fn word_error_line(rate: f64) -> String {
    let (error, accuracy) = (rate * 100.0, (1.0 - rate) * 100.0);
    format!("Word Error Rate: {error:?}%, accuracy={accuracy:?}%")
}

/// Returns the same line for the accuracy in percent.
#[must_use]
pub fn word_accuracy_line(accuracy: f64) -> String {
    format!("Word Error Rate: {:?}%, accuracy={accuracy:?}%", 100.0 - accuracy)
}
