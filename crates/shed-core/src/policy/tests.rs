use super::*;

#[test]
fn a_policy_without_parameters_has_its_defaults() {
    let policy: Speculation = "shed-prime".parse().unwrap();
    assert_eq!(policy, Speculation::new(ShedPrime::default()));
    assert_eq!("shed-prime{}".parse(), Ok(policy.clone()));
    assert_eq!(policy, Policy::default().speculation);
    assert_eq!("hadoop-ns".parse(), Ok(Speculation::none()));
}

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "hadoop-ns",
        "shed-prime{max_clones=3,miss_target=0.05,clone_price=0.5,slot_price=0.25,spread=0.3,hedge=silent,\
         weigh=off,pool=off,interval=2,grace=5}",
    ] {
        let policy: Speculation = text.parse().unwrap();
        assert_eq!(policy.to_string(), text);
    }
}

#[test]
fn a_parameter_of_before_is_valid_with_its_default() {
    let policy: Speculation = "shed-prime{reserve=off,pool=off}".parse().unwrap();
    assert_eq!(Ok(policy.clone()), "shed-prime{pool=off}".parse());
    assert!(!policy.to_string().contains("reserve"), "{policy}");
    let other = "shed-prime{reserve=on}".parse::<Speculation>().unwrap_err();
    let message = other.to_string();
    assert!(
        message.contains("reserve=on: ") && message.contains("; remove reserve"),
        "{message}"
    );
    assert!(!message.contains("reserve (off)"), "{message}");
}

#[test]
fn every_policy_is_read_back_by_its_name_and_with_each_order() {
    for speculation in Registry::default().all() {
        assert_eq!(speculation.name().parse(), Ok(speculation.clone()));
        assert_eq!(speculation.to_string().parse(), Ok(speculation.clone()));
        for order in Order::ALL {
            let policy = Policy {
                order,
                speculation: speculation.clone(),
                ..Policy::default()
            };
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }
}

#[test]
fn a_distribution_combines_with_every_policy() {
    let distribution =
        |text: &str| Policy::parse(text, Order::default()).map(|policy| policy.distribution);
    assert_eq!(
        distribution("hadoop-ns{distribution=best}"),
        Ok(DistributionChoice::Best)
    );
    assert_eq!(
        distribution("shed-prime{spread=0.2}"),
        Ok(DistributionChoice::default())
    );
    for choice in DistributionChoice::ALL {
        let policy = Policy {
            distribution: choice,
            ..Policy::default()
        };
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let message = distribution("shed-prime{distribution=gauss}")
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "unknown distribution `gauss`: use one of pareto, log-normal, weibull, empirical, best"
    );
}

#[test]
fn the_order_in_the_text_wins() {
    let flag = Order::Fifo;
    let order = |text: &str| Policy::parse(text, flag).unwrap().order;
    assert_eq!(order("shed-prime{spread=0.2}"), Order::Fifo);
    assert_eq!(
        order("shed-prime{spread=0.2,order=edf}"),
        Order::EarliestDeadline
    );
    assert_eq!(order("hadoop-ns{order=lst}"), Order::LeastSlack);
}

#[test]
fn an_unknown_name_is_answered_with_all_names() {
    for (text, fault) in [
        ("sooner", "unknown policy `sooner`"),
        ("shed-prime{pool}", "`pool` is not name=value"),
        ("shed-prime{spread=0.1", "lacks its `}`"),
        ("shed-prime{pool=on,pool=off}", "`pool` is given twice"),
    ] {
        let message = text.parse::<Policy>().unwrap_err().to_string();
        assert!(message.contains(fault), "{message}");
        for policy in Registry::default().all() {
            assert!(message.contains(policy.name()), "{message}");
        }
    }
}

#[test]
fn a_wrong_parameter_is_answered_with_those_of_the_policy() {
    for (text, fault) in [
        ("shed-prime{spread=20}", "spread=20 is not from 0 to 10"),
        ("shed-prime{spread=-0.5}", "spread=-0.5 is not from 0 to 10"),
        ("shed-prime{spread=inf}", "spread=inf is not from 0 to 10"),
        ("shed-prime{spread=NaN}", "spread=NaN is not from 0 to 10"),
        ("shed-prime{max_clones=1.5}", "is not a whole number"),
        ("shed-prime{hedge=best}", "unknown hedge `best`"),
        ("shed-prime{pool=yes}", "pool=yes is neither on nor off"),
        ("shed-prime{kappa=1}", "no parameter `kappa`"),
    ] {
        let message = text.parse::<Policy>().unwrap_err().to_string();
        assert!(message.contains(fault), "{message}");
        assert!(message.contains("hedge (never, silent"), "{message}");
        assert!(message.contains("spread (0 to 10)"), "{message}");
        assert!(message.contains("order=lst"), "{message}");
    }
    let message = "hadoop-ns{spread=0.1}".parse::<Policy>().unwrap_err();
    assert!(message.to_string().contains("`hadoop-ns` has no parameter"));
}

#[test]
fn an_order_is_read_by_its_label() {
    for order in Order::ALL {
        assert_eq!(order.label().parse(), Ok(order));
    }
    let message = "lifo".parse::<Order>().unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown order `lifo`: use lst, edf, fifo, capacity, drf, carbyne, tetris, srpt, svf or dollymp"
    );
}
