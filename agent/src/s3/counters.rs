//! What a thread counts: written by it alone, read by the one that tells of it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error_class::ErrorCounters;
use super::spec::{OperationKind, Spec};
use crate::latency::{LatencyCounters, add_by_owner};
use crate::native::counts::IoCounters;

macro_rules! rows {
    ($($(#[$note:meta])* $row:ident => $name:literal,)*) => {
        /// What has latencies of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Row { $($(#[$note])* $row,)* }

        /// All, in the order of their counters.
        pub const ROWS: &[Row] = &[$(Row::$row,)*];

        impl Row {
            /// As lines name it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$row => $name,)* }
            }
        }
    };
}

rows! {
    /// Whole objects read: the operation, with all its attempts.
    Get => "object_get",
    /// Parts of objects read.
    GetRange => "object_get_range",
    /// Objects written by one request.
    Put => "object_put",
    /// Objects written in parts.
    Multipart => "object_multipart",
    /// Heads read.
    Head => "object_head",
    /// Pages of keys read.
    List => "object_list",
    /// Objects removed.
    Delete => "object_delete",
    /// One attempt at it, as in the next ones.
    GetAttempt => "object_get_attempt",
    /// Of a part.
    GetRangeAttempt => "object_get_range_attempt",
    /// Of a write.
    PutAttempt => "object_put_attempt",
    /// Of a head.
    HeadAttempt => "object_head_attempt",
    /// Of a page.
    ListAttempt => "object_list_attempt",
    /// Of a removal.
    DeleteAttempt => "object_delete_attempt",
    /// Up to the first byte of the body.
    GetFirstByte => "object_get_first_byte",
    /// The same of a part.
    GetRangeFirstByte => "object_get_range_first_byte",
    /// Up to the end of the answer's head.
    GetHeaders => "object_get_headers",
    /// The same of a part.
    GetRangeHeaders => "object_get_range_headers",
    /// From the last byte sent to the answer.
    PutCommit => "object_put_commit",
    /// A part of an object written.
    Part => "object_part",
    /// The request that begins an upload in parts.
    UploadCreate => "object_upload_create",
    /// The request that makes an object of its parts.
    UploadComplete => "object_upload_complete",
    /// TCP and TLS.
    Connect => "object_connect",
}

/// Rows of operations, in the order of `Operation`.
pub const OPERATION_ROWS: usize = 7;
/// Classes of sizes: powers of four from 1 KiB to 1 TiB.
pub const SIZE_CLASSES: usize = 16;

/// Latencies by server and operation that are kept, those of the first servers: each has a row in
/// the last line, of up to some 30 kB, and the line may have 2 MiB.
const MAX_ENDPOINT_ROWS: usize = 64;

/// What is counted as an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A whole object is read.
    Get = 0,
    /// A part of one is.
    GetRange = 1,
    /// An object is written by one request.
    Put = 2,
    /// An object is written in parts.
    Multipart = 3,
    /// A head is read.
    Head = 4,
    /// A page of keys is.
    List = 5,
    /// An object is removed.
    Delete = 6,
}

/// All of them.
pub const OPERATIONS: [Operation; OPERATION_ROWS] = [
    Operation::Get,
    Operation::GetRange,
    Operation::Put,
    Operation::Multipart,
    Operation::Head,
    Operation::List,
    Operation::Delete,
];

impl Operation {
    /// The row of the operation with all its attempts.
    #[must_use]
    pub fn row(self) -> Row {
        ROWS[self as usize]
    }

    /// The row of one attempt; an upload in parts has several requests, each with a row of its own.
    #[must_use]
    pub fn attempt_row(self) -> Option<Row> {
        match self {
            Self::Get => Some(Row::GetAttempt),
            Self::GetRange => Some(Row::GetRangeAttempt),
            Self::Put => Some(Row::PutAttempt),
            Self::Multipart => None,
            Self::Head => Some(Row::HeadAttempt),
            Self::List => Some(Row::ListAttempt),
            Self::Delete => Some(Row::DeleteAttempt),
        }
    }

    /// The rows of the first byte and of the head, of what has a body.
    #[must_use]
    pub fn arrival_rows(self) -> Option<(Row, Row)> {
        match self {
            Self::Get => Some((Row::GetFirstByte, Row::GetHeaders)),
            Self::GetRange => Some((Row::GetRangeFirstByte, Row::GetRangeHeaders)),
            _ => None,
        }
    }

    /// Whether bytes of objects come from the server.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::GetRange)
    }

    /// Whether bytes of objects go there.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Put | Self::Multipart)
    }
}

/// What a spec has done.
#[must_use]
pub fn operations_of(spec: &Spec) -> Vec<Operation> {
    let set = spec.objects.as_ref();
    let part_bytes = set.and_then(|set| set.part_bytes);
    let (has_large, has_small) = match (set, part_bytes) {
        (Some(set), Some(part)) => (set.largest_bytes() > part, set.smallest_bytes() <= part),
        _ => (false, true),
    };
    let does = |operation: &Operation| match operation {
        Operation::Get => spec.has_operation(OperationKind::Get),
        Operation::GetRange => spec.has_operation(OperationKind::GetRange),
        Operation::Put => spec.has_operation(OperationKind::Put) && has_small,
        Operation::Multipart => spec.has_operation(OperationKind::Put) && has_large,
        Operation::Head => spec.has_operation(OperationKind::Head),
        Operation::List => spec.has_operation(OperationKind::List),
        Operation::Delete => spec.has_operation(OperationKind::Delete),
    };
    OPERATIONS.into_iter().filter(does).collect()
}

/// The class of a size: the smallest power of four that holds it.
#[must_use]
pub fn size_class(bytes: u64) -> usize {
    let kib = bytes.div_ceil(1024).max(1);
    let bits = u64::BITS - (kib - 1).leading_zeros();
    (bits.div_ceil(2) as usize).min(SIZE_CLASSES - 1)
}

/// The largest size of a class.
#[must_use]
pub fn size_class_bytes(class: usize) -> u64 {
    1024 << (2 * class)
}

/// How often an operation was tried, and how it failed.
#[derive(Debug, Default)]
pub struct AttemptCounters {
    /// All attempts.
    pub attempts: AtomicU64,
    /// Operations that failed, by the class of the last attempt.
    pub failed: ErrorCounters,
    /// Attempts that failed.
    pub attempt_errors: ErrorCounters,
}

/// What went to one server.
#[derive(Default)]
pub struct ServerCounters {
    /// Operations that succeeded.
    pub operations: AtomicU64,
    /// Those that failed.
    pub failed: AtomicU64,
    /// Bytes of objects.
    pub bytes: AtomicU64,
    /// The sum of their latencies.
    pub lat_sum_ns: AtomicU64,
    /// The latencies by operation; None for what is never done, for a load's only server, and past
    /// `MAX_ENDPOINT_ROWS`.
    latencies: [Option<Box<IoCounters>>; OPERATION_ROWS],
}

impl ServerCounters {
    /// The latencies of an operation.
    #[must_use]
    pub fn latencies(&self, operation: Operation) -> Option<&IoCounters> {
        self.latencies[operation as usize].as_deref()
    }
}

/// All that one thread counts, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct ThreadCounters {
    rows: [Option<Box<IoCounters>>; ROWS.len()],
    sizes: [Option<Box<[IoCounters; SIZE_CLASSES]>>; OPERATION_ROWS],
    /// By operation.
    pub attempts: [AttemptCounters; OPERATION_ROWS],
    /// Attempts made again, by the class that caused them.
    pub retried: ErrorCounters,
    /// By server.
    pub servers: Vec<ServerCounters>,
    /// How late operations began for which there was room.
    pub lateness: LatencyCounters,
    /// The same of those that began right after a wait for nothing else.
    pub wakeup_delays: LatencyCounters,
    /// Connections opened before the run.
    pub opened_before: AtomicU64,
    /// Connections opened in it.
    pub opened: AtomicU64,
    /// Connections that the server closed while nothing was on its way.
    pub closed_by_server: AtomicU64,
    /// Connections that could not be opened.
    pub connect_failures: AtomicU64,
    /// Operations under way.
    pub in_flight: AtomicU64,
    /// Operations that were due and for which there was no room.
    pub backlog: AtomicU64,
    /// Operations that ended after submission had stopped.
    pub drained: AtomicU64,
    /// Operations that were due and never began.
    pub unsubmitted: AtomicU64,
    /// How long the oldest of them was due.
    pub oldest_unsubmitted_ns: AtomicU64,
    /// Operations that have not ended, of a thread that has.
    pub hung: AtomicU64,
    /// Bodies that were compared, and their bytes.
    pub verified: AtomicU64,
    /// See `verified`.
    pub verified_bytes: AtomicU64,
    /// Bodies of two writes.
    pub torn: AtomicU64,
    /// Bodies that were never written.
    pub corrupt: AtomicU64,
    /// Keys in pages.
    pub listed_keys: AtomicU64,
    /// Uploads that became an object.
    pub uploads_completed: AtomicU64,
    /// Uploads that were aborted.
    pub uploads_aborted: AtomicU64,
    /// Uploads that could be neither completed nor aborted.
    pub uploads_left: AtomicU64,
    /// Time that signatures took.
    pub sign_ns: AtomicU64,
    /// Time that encryption took.
    pub tls_ns: AtomicU64,
    /// Time that bodies took to be made.
    pub contents_ns: AtomicU64,
    /// Time that bodies took to be compared.
    pub verify_ns: AtomicU64,
}

impl ThreadCounters {
    /// Counters for what a spec has done, on so many servers.
    #[must_use]
    pub fn new(spec: &Spec, servers: usize) -> Self {
        let mut counters = Self::default();
        counters.servers.resize_with(servers, ServerCounters::default);
        let operations = operations_of(spec);
        // What a load has on its only server is in the rows of its operations.
        if servers > 1 {
            let with_latencies = MAX_ENDPOINT_ROWS / operations.len().max(1);
            for server in counters.servers.iter_mut().take(with_latencies) {
                for &operation in &operations {
                    server.latencies[operation as usize] = Some(Box::default());
                }
            }
        }
        let has_times = spec.rate.is_some();
        let has_sizes = spec.objects.as_ref().is_some_and(super::dataset::DataSet::has_many_sizes);
        counters.add_row(Row::Connect, false);
        for operation in operations {
            counters.add_row(operation.row(), has_times);
            if let Some(row) = operation.attempt_row() {
                counters.add_row(row, false);
            }
            if let Some((first_byte, headers)) = operation.arrival_rows() {
                counters.add_row(first_byte, false);
                counters.add_row(headers, false);
            }
            if operation == Operation::Put {
                counters.add_row(Row::PutCommit, false);
            }
            if operation == Operation::Multipart {
                for row in [Row::Part, Row::UploadCreate, Row::UploadComplete] {
                    counters.add_row(row, false);
                }
            }
            if has_sizes
                && matches!(operation, Operation::Get | Operation::Put | Operation::Multipart)
            {
                counters.sizes[operation as usize] = Some(Box::default());
            }
        }
        counters
    }

    fn add_row(&mut self, row: Row, has_times: bool) {
        let service = has_times.then(Box::default);
        self.rows[row as usize] = Some(Box::new(IoCounters { service, ..IoCounters::default() }));
    }

    /// The counters of a row; None for what is never done.
    #[inline]
    #[must_use]
    pub fn row(&self, row: Row) -> Option<&IoCounters> {
        self.rows[row as usize].as_deref()
    }

    /// The counters of a class of sizes.
    #[must_use]
    pub fn size_class(&self, operation: Operation, class: usize) -> Option<&IoCounters> {
        self.sizes[operation as usize].as_deref().map(|classes| &classes[class])
    }

    /// Count what succeeded in a row.
    #[inline]
    pub fn add(&self, row: Row, latency_ns: u64, bytes: u64) {
        if let Some(counters) = self.row(row) {
            counters.response.add(latency_ns);
            add_by_owner(&counters.bytes, bytes);
        }
    }

    /// Count an operation that succeeded; `response_ns` from when it was due.
    pub fn add_operation(
        &self,
        operation: Operation,
        (response_ns, service_ns): (u64, u64),
        bytes: u64,
    ) {
        self.add(operation.row(), response_ns, bytes);
        let service = self.row(operation.row()).and_then(|row| row.service.as_deref());
        if let Some(service) = service {
            service.add(service_ns);
        }
        if let Some(class) = self.size_class(operation, size_class(bytes)) {
            class.response.add(response_ns);
            add_by_owner(&class.bytes, bytes);
        }
    }
}

/// The sum of a counter over all threads.
#[must_use]
pub fn sum_of(
    threads: &[std::sync::Arc<ThreadCounters>],
    counter: impl Fn(&ThreadCounters) -> &AtomicU64,
) -> u64 {
    threads.iter().map(|thread| counter(thread).load(Ordering::Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_the_smallest_class_that_holds_it() {
        for (bytes, upper) in [
            (0, 1024),
            (1024, 1024),
            (1025, 4096),
            (4096, 4096),
            (65_536, 65_536),
            (65_537, 262_144),
            (8 << 20, 16 << 20),
        ] {
            assert_eq!(size_class_bytes(size_class(bytes)), upper, "{bytes}");
        }
        assert_eq!(size_class(u64::MAX), SIZE_CLASSES - 1);
    }

    #[test]
    fn only_the_first_of_many_servers_have_latencies() {
        let spec_of = |operations: serde_json::Value| {
            let text = crate::s3::spec::tests::spec_with(&serde_json::json!({
                "operations": operations, "new_prefix": "iolab-x/new/",
            }));
            Spec::parse(text.to_string().as_bytes()).unwrap()
        };
        let with_latencies = |spec: &Spec, servers| {
            let counters = ThreadCounters::new(spec, servers);
            counters.servers.iter().filter(|one| one.latencies(Operation::Get).is_some()).count()
        };
        let get = serde_json::json!({"kind": "get", "share": 1.0});
        let put = serde_json::json!({"kind": "put", "share": 1.0});
        let one = spec_of(serde_json::json!([get]));
        let two = spec_of(serde_json::json!([get, put]));
        assert_eq!([1, 2, 64, 256].map(|servers| with_latencies(&one, servers)), [0, 2, 64, 64]);
        assert_eq!([1, 2, 64, 256].map(|servers| with_latencies(&two, servers)), [0, 2, 32, 32]);
    }

    #[test]
    fn rows_of_operations_are_the_first() {
        for operation in OPERATIONS {
            assert_eq!(operation.row() as usize, operation as usize);
        }
    }
}
