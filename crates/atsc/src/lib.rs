//! An ATSC 8-VSB receiver and transmitter.
