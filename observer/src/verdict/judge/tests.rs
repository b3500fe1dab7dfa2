//! What the judge keeps, and for how long.

use super::*;
use crate::verdict::Outcome;
use crate::verdict::script::events;
use crate::verdict::table::IN_FLIGHT;

fn judge(script: &str) -> Judge {
    let mut judge = Judge::new(Settings::default());
    for observed in events(script) {
        judge.handle_event(&observed);
        while judge.poll_output().is_some() {}
    }
    judge
}

#[test]
fn what_is_over_leaves_little_behind() {
    let mut script = "0 hello 2025-06-18\n".to_owned();
    for id in 1..5000 {
        script.push_str(&format!(
            "{id} call {id} t {{\"n\":{id}}}\n{id}.2 progress {id}\n"
        ));
        script.push_str(&match id % 3 {
            0 => format!("{id}.3 cancel {id}\n"),
            1 => format!("{id}.3 s= {id}\n"),
            _ => format!("{id}.3 s= \"{id}\"\n"),
        });
    }
    script.push_str("6000 end");
    let judge = judge(&script);
    let conn = &judge.state.conns[&ConnId(1)];
    assert_eq!((judge.state.in_flight, judge.state.texts), (0, 0));
    assert!(conn.lane(Side::Client).is_empty() && conn.repeats.is_empty());
    assert_eq!(judge.timers.next(), None);
    assert!(judge.parked.is_empty());
}

#[test]
fn more_in_flight_than_is_kept_is_a_gap_and_no_growth() {
    let mut judge = Judge::new(Settings::default());
    let template = events("1 call 1 t").pop().expect("an event");
    let Event::Message { conn, from, .. } = template.event else {
        panic!("a message")
    };
    for id in 0..IN_FLIGHT + 10 {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let frame = crate::jsonrpc::Frame::parse(json.into()).expect("a message");
        let event = Event::Message {
            conn,
            from,
            offset: None,
            bytes: 1,
            frame,
        };
        judge.handle_event(&Observed {
            at: template.at,
            event,
        });
    }
    assert_eq!(judge.state.in_flight, IN_FLIGHT);
    let outputs: Vec<_> = std::iter::from_fn(|| judge.poll_output()).collect();
    let unknown =
        |output: &&Output| matches!(output, Output::Call(call) if call.outcome == Outcome::Unknown);
    assert_eq!(outputs.iter().filter(unknown).count(), 10);
    let gap = |output: &&Output| matches!(output, Output::Finding(it) if it.rule == "evidence-gap");
    assert_eq!(outputs.iter().filter(gap).count(), 10);
}

#[test]
fn a_connection_that_is_closed_is_forgotten() {
    let judge = judge("0 hello 2025-06-18\n1 call 1 t\n2 close\n9 end");
    assert!(judge.state.conns.is_empty());
    assert_eq!(judge.state.in_flight, 0);
}
