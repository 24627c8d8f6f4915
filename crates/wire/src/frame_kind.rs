//! The kinds of frames and their numbers. What a frame of a kind carries is in [`crate::message`], [`crate::chunk`],
//! [`crate::signed_command`], [`crate::signed_report`] and [`crate::enrollment`].

/// Declares the kinds once: the enum, the list of all, and the way from number to kind.
macro_rules! frame_kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal,)*) => {
        /// The kind of message that a frame carries: a byte of its header. Numbers are part of the format and never used again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum FrameKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl FrameKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The kind of a number; `None` for a number that this program does not know.
            #[must_use]
            pub const fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

frame_kinds! {
    /// [`crate::message::Hello`].
    Hello = 1,
    /// [`crate::message::Heartbeat`].
    Heartbeat = 2,
    /// [`crate::message::Command`].
    Command = 3,
    /// [`crate::message::StateReport`].
    StateReport = 4,
    /// [`crate::chunk::Chunk`].
    Chunk = 5,
    /// [`crate::message::StreamEnd`].
    StreamEnd = 6,
    /// [`crate::message::Ack`].
    Ack = 7,
    /// [`crate::signed_command::SignedCommand`].
    SignedCommand = 8,
    /// [`crate::enrollment::EnrollRequest`].
    EnrollRequest = 9,
    /// [`crate::enrollment::EnrollResponse`].
    EnrollResponse = 10,
    /// [`crate::message::Examined`].
    Examined = 11,
    /// [`crate::message::Inventory`].
    Inventory = 12,
    /// [`crate::signed_report::SignedReport`].
    SignedReport = 13,
}

impl FrameKind {
    /// The number in the frame's header.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}
