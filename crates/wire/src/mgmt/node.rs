//! The description of a node, its answer to an information request.

use crate::Result;
use crate::bits::{field, fit};

/// Node type and extended information of a [`NodeInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// Type 1. The instance of a crossbar is the port by which the request entered.
    Crossbar {
        /// Number of ports.
        ports: u8,
        /// The number of them, from port 0, that are transports.
        transports: u8,
    },
    /// Type 2. Instance 0 is the control endpoint.
    StreamEndpoint {
        /// Takes control packets.
        control: bool,
        /// Takes or sends data.
        data: bool,
        /// Input ports, 6 bits.
        inputs: u8,
        /// Output ports, 6 bits.
        outputs: u8,
        /// Reports stream errors.
        reports_errors: bool,
    },
    /// Type 3.
    Transport {
        /// 0 = generic.
        subtype: u8,
    },
    /// A type without a variant here.
    Other {
        /// Type code, 4 bits; not 1, 2 or 3.
        code: u8,
        /// Extended information, 18 bits.
        extended: u32,
    },
}

impl Node {
    /// Returns the 4-bit type code on the wire.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Node::Crossbar { .. } => 1,
            Node::StreamEndpoint { .. } => 2,
            Node::Transport { .. } => 3,
            Node::Other { code, .. } => *code,
        }
    }

    fn extended(&self) -> Result<u64> {
        Ok(match *self {
            Node::Crossbar { ports, transports } => u64::from(ports) | u64::from(transports) << 8,
            Node::StreamEndpoint { control, data, inputs, outputs, reports_errors } => {
                u64::from(control)
                    | u64::from(data) << 1
                    | fit(inputs.into(), 2, 6)?
                    | fit(outputs.into(), 8, 6)?
                    | u64::from(reports_errors) << 14
            }
            Node::Transport { subtype } => subtype.into(),
            // A code with its own variant would not be read back as `Other`.
            Node::Other { code: 1..=3, .. } => return Err(crate::Error::FieldOverflow),
            Node::Other { extended, .. } => fit(extended.into(), 0, 18)?,
        })
    }

    fn from_fields(code: u8, extended: u64) -> Node {
        let byte = |lo| field(extended, lo, 8) as u8;
        let six = |lo| field(extended, lo, 6) as u8;
        let bit = |lo| field(extended, lo, 1) != 0;
        match code {
            1 => Node::Crossbar { ports: byte(0), transports: byte(8) },
            2 => Node::StreamEndpoint {
                control: bit(0),
                data: bit(1),
                inputs: six(2),
                outputs: six(8),
                reports_errors: bit(14),
            },
            3 => Node::Transport { subtype: byte(0) },
            _ => Node::Other { code, extended: extended as u32 },
        }
    }
}

/// The operand of [`super::Op::InfoResp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeInfo {
    /// `[15:0]` the id that the device has from RPC.
    pub device_id: u16,
    /// `[29:20]` the index among nodes of its kind, 10 bits.
    pub instance: u16,
    /// `[19:16]` type and `[47:30]` extended information.
    pub node: Node,
}

impl NodeInfo {
    /// Decodes a 48-bit operand. Reserved bits are dropped.
    #[must_use]
    pub fn from_operand(operand: u64) -> NodeInfo {
        NodeInfo {
            device_id: field(operand, 0, 16) as u16,
            instance: field(operand, 20, 10) as u16,
            node: Node::from_fields(field(operand, 16, 4) as u8, field(operand, 30, 18)),
        }
    }

    /// Encodes the 48-bit operand.
    ///
    /// # Errors
    /// [`crate::Error::FieldOverflow`].
    pub fn to_operand(&self) -> Result<u64> {
        Ok(u64::from(self.device_id)
            | fit(self.node.code().into(), 16, 4)?
            | fit(self.instance.into(), 20, 10)?
            | self.node.extended()? << 30)
    }
}
