//! The seeds of mixes that left a wrong ledger, with their causes.

/// Mixes that left a wrong ledger once.
pub const FAILED_ONCE: [u64; 53] = [
    // After the stream was set up again, delayed packets with old numbers came where those numbers
    // were due again.
    178_838_275_243_488,
    // The short last packet of a run came damaged, and counted as a full one.
    178_838_275_466_329,
    // The stream was stopped before it noticed an overrun, the end before which was lost.
    178_838_275_289_659,
    // The host took credit as given that the device did not have.
    178_838_275_364_576,
    // A clock was set back around an overrun: its time does not show what was sent.
    178_838_275_284_237,
    178_838_275_534_546,
    // The opening of the stream was repeated. It fails no longer; the cause is not known.
    178_838_275_513_454,
    // A clock was set in the buffered samples of a run that overran: its packets counted as those
    // of the new run.
    178_838_275_798_954,
    178_838_275_993_436,
    // A clock was set back behind an overrun, and the first packets of the new run were lost until
    // its time had passed that of the end of the one before.
    178_838_275_900_117,
    // Copies of packets that came during a new set-up of the stream counted as credit.
    178_838_275_837_690,
    // Behind a new set-up of the stream a delayed packet with an old number came first: all new
    // ones with smaller numbers counted as late.
    178_838_275_807_771,
    178_838_276_106_372,
    178_838_276_153_991,
    178_838_276_192_373,
    // A delayed packet from before a clock was set back was handed out as a new one.
    178_838_290_135_536,
    // The short end of a run came damaged behind a new set-up, before a clock that was set back.
    178_838_275_814_122,
    // A clock was set forward in the buffered samples of a run that overran: its packets counted as
    // those of the new run, whose start was still ahead.
    178_838_290_003_694,
    // A delayed credit report came behind a new set-up of the stream, whose counts were lower.
    178_838_290_132_064,
    // More than 16 delayed packets with old numbers came behind a new set-up of the stream.
    178_838_300_027_070,
    // The device kept the end of a run that overran, because it had no credit.
    178_838_300_190_207,
    // A clock was set back in the buffered samples of a run that overran, or behind its restart.
    178_838_300_269_947,
    178_838_300_297_016,
    178_838_300_412_800,
    // Three runs overran in sequence, and their ends were lost.
    178_838_300_300_873,
    // Behind a clock that was set back, a packet had the time of one that was lost.
    178_838_300_368_563,
    // Behind a clock that was set back, an old end counted as that of the stopped run.
    178_838_300_229_525,
    178_838_300_353_640,
    178_838_290_274_270,
    // The end of a stopped run counted as an overrun there.
    178_838_300_343_045,
    178_838_300_491_424,
    // Packets of a new run disowned delayed ones, and old packets were handed out as new ones.
    178_838_300_016_891,
    178_838_290_006_031,
    // A clock was set back twice within one gap.
    178_838_290_396_879,
    // More than 16 delayed packets with old numbers came before the first one with a new number.
    178_838_290_318_738,
    // Delayed packets with old numbers followed each other, between packets of the new run.
    178_838_400_001_604,
    // Packets were lost behind the end of a run, and the clock was set among them: their numbers
    // count them, and not the time since the start.
    178_838_430_309_085,
    178_838_460_164_189,
    // Of two runs, both of which may have begun, a packet counted as one of the wrong one.
    178_838_430_352_167,
    178_838_440_180_224,
    // The device's totals came behind newer ones, and took credit back for good.
    178_838_430_494_804,
    // A packet of another time came late where the clock was set behind the end of a run.
    178_838_440_188_616,
    // Two damaged packets counted as one where less time than they last had passed.
    178_838_440_247_823,
    // Only packets were lost, and the time of an overrun was of a clock that had been set.
    178_838_440_296_474,
    // Packets that were delayed over a new set-up came behind newer ones that it passed over.
    178_838_440_499_490,
    178_838_460_186_846,
    // The time of an overrun was of a clock that had been set, in the buffered samples, and the end
    // of the run was lost or came damaged.
    178_838_600_531_049,
    178_838_600_899_774,
    // A delayed packet had one of the first numbers behind a new set-up, after those had come, and
    // began the numbers anew.
    178_839_000_337_052,
    178_839_000_988_111,
    // The clock was set in the buffered samples of a run that overran, and the new run began at the
    // time that its start had by the new clock.
    184_000_000_048_613,
    // All reports of credit were lost, or the device's request for one: it kept samples at the end,
    // which the comparison did not know.
    190_000_000_080_841,
    190_000_000_107_802,
];
