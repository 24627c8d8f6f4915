//! `spl.txt`: the samples of a run, from what PTDaemon returns, with the mark of PTDaemon's own log.

/// What precedes the fields of a channel and of the sum.
const BLOCK: &str = "Watts";

/// Adds the mark to a sample, and the names of the channels behind the sum.
pub(super) fn marked(line: &str, mark: &str) -> String {
    let line = line.trim_end();
    let blocks: Vec<&str> = line.split(BLOCK).collect();
    match blocks.as_slice() {
        // The time, the sum and at least one channel: every further block begins with a comma behind it.
        [time, sum, channels @ ..] if !channels.is_empty() => {
            let mut text = format!("{time}{BLOCK}{sum}Mark,{mark},");
            for (number, channel) in (1..).zip(channels) {
                text.push_str(&format!("Ch{number},{BLOCK}{channel}"));
            }
            text
        }
        _ => format!("{line},Mark,{mark}"),
    }
}

/// Adds up the samples of several meters, line by line, as far as all have some. Only one column can have the sum, the watts.
pub(super) fn merged(meters: &[Vec<String>]) -> Vec<String> {
    let length = meters.iter().map(Vec::len).min().unwrap_or_default();
    let line = |at: usize| {
        let lines: Vec<&str> = meters.iter().map(|lines| lines[at].as_str()).collect();
        let fields: Vec<&str> = lines.first()?.split(',').collect();
        let watts = |line: &&str| line.split(',').nth(3)?.parse::<f64>().ok();
        // -1 is a meter without a reading.
        let sum: f64 = lines
            .iter()
            .filter_map(watts)
            .filter(|watts| *watts != -1.0)
            .map(f64::abs)
            .sum();
        let mut text = format!(
            "Time,{},Watts,{sum:.6},Volts,-1.000000,Amps,-1.000000,PF,-1.000000,Mark,{}",
            fields.get(1)?,
            fields.get(11)?
        );
        for (number, line) in (1..).zip(&lines) {
            text.push_str(&format!(",Analyzer{number},{line}"));
        }
        Some(text)
    };
    (0..length).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_gets_its_mark() {
        let line = "Time,t,Watts,1.0,Volts,2.0,Amps,3.0,PF,0.9";
        assert_eq!(marked(line, "a_testing"), format!("{line},Mark,a_testing"));
        let several =
            "Time,t,Watts,3,Volts,-1,Amps,-1,PF,-1,Watts,1,Volts,2,Amps,3,PF,4,Watts,2,Volts,2,Amps,3,PF,4";
        let expected = "Time,t,Watts,3,Volts,-1,Amps,-1,PF,-1,Mark,m,Ch1,Watts,1,Volts,2,Amps,3,PF,4,\
                        Ch2,Watts,2,Volts,2,Amps,3,PF,4";
        assert_eq!(marked(several, "m"), expected);
        assert_eq!(marked("", "m"), ",Mark,m");
    }

    #[test]
    fn meters_are_added_up() {
        let one = marked("Time,t,Watts,1.5,Volts,2.0,Amps,3.0,PF,0.9", "m");
        let two = marked("Time,u,Watts,-2.0,Volts,2.0,Amps,3.0,PF,0.9", "m");
        let off = marked("Time,u,Watts,-1,Volts,2.0,Amps,3.0,PF,0.9", "m");
        let sum = merged(&[vec![one.clone(), one.clone(), one], vec![two.clone(), off]]);
        assert_eq!(sum.len(), 2);
        assert!(
            sum[0].starts_with(
                "Time,t,Watts,3.500000,Volts,-1.000000,Amps,-1.000000,PF,-1.000000,Mark,m,Analyzer1,Time,t,"
            ),
            "{}",
            sum[0]
        );
        assert!(sum[0].ends_with(&format!(",Analyzer2,{two}")) && sum[1].contains("Watts,1.500000,"));
        assert!(merged(&[vec!["x".to_owned()], vec![String::new()]]).is_empty());
    }
}
