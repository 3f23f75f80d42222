//! What most programs use, for `use millstream::prelude::*;`.

#[cfg(feature = "client")]
pub use millstream_client::{
    ClientArgs, ClientError, DeviceTime, GapPolicy, Radio, Received, RxOptions, RxStream,
    StatusKind, StreamDirection, StreamGap, StreamStart, TxOptions, TxStream,
};

// Of the crate below the client: what a flowgraph with a radio needs.
#[cfg(feature = "radio")]
pub use millstream_radio::{
    Cause, Complex32, Device, DeviceArgs, Ledger, RxArgs, TxArgs, TxLedger,
    block::{RadioSink, RadioSource, TransmitStart},
};

#[cfg(feature = "emulator")]
pub use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio};

#[cfg(feature = "flow")]
pub use crate::flow::{
    Block, BlockError, BlockFacts, BlockParameters, BlockType, Complex, Context, Each, Graph,
    GraphError, GraphFile, In, Item, ItemRatio, OneToOne, Out, ParameterKind, Plan, Ports, Process,
    Registry, RunError, Through, WaitMode, Work,
    blocks::{FileSink, FileSource, Head, VectorSink, VectorSource},
};

#[cfg(feature = "blocks")]
pub use millstream_blocks::{
    power_spectrum::PowerSpectrum,
    signal_source::{SignalSource, Waveform},
};

#[cfg(feature = "record")]
pub use crate::record::{SigmfRecording, SigmfSink, SigmfSource};
