// Made by "make docs" from the types of internal/report/series.
import type { Effect } from './record'

/**
 * Band is an event as an interval of the timeline: while it was in force, or while its change
 * settled. To is null if the interval lasts to the end.
 */
export interface Band {
  name: string
  kind: string
  text: string
  from: number
  to?: number
  /** effect applies to Targets. Notes, scale changes and drifts have none. */
  effect?: Effect
  targets?: string[]
  /** reverts marks the change that reverted a settled event. Its effect is the opposite. */
  reverts?: boolean
  state?: string
  error?: string
  /** complete_s counts from From. Moved is in bytes. */
  complete_s?: number
  moved?: number
}

/**
 * Curve is a distribution: the share Tail[i] of the operations, 0 to 1, took longer than US[i]
 * microseconds.
 */
export interface Curve {
  operation: string
  /** service or response */
  clock: string
  count: number
  tail: number[]
  us: number[]
}

/**
 * Heat counts operations by time and latency: Counts[i][j] operations began in bin i and took from
 * Edges[j] to Edges[j+1] microseconds.
 */
export interface Heat {
  clock: string
  bin_s: number
  t: number[]
  edges: number[]
  counts: number[][]
}

/** Network holds round trips between nodes of an overlay network. */
export interface Network {
  bin_s: number
  t: number[]
  mean_ms: number[]
  worst_ms: number[]
  unreachable: number[]
}

/** NodeUse is one node's usage in cores, bytes and bytes per second. */
export interface NodeUse {
  cpu: number[]
  memory: number[]
  read: number[]
  wrote: number[]
  rx: number[]
  tx: number[]
}

/** Nodes is the resource usage of nodes, as means over a bin. */
export interface Nodes {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  series: NodeUse[]
  hidden?: number
}

/**
 * Operations are percentiles of the response time by kind of operation, in microseconds: the
 * maximum over the seconds of a bin, 0 if no operation succeeded.
 */
export interface Operations {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  p95: number[][]
  p99: number[][]
}

/**
 * Probes are the short jobs that ran besides the workload: their start times, and the 95th
 * percentile by kind of operation in microseconds, 0 if no operation succeeded.
 */
export interface Probes {
  t: number[]
  names: string[]
  /** as Names */
  p95: number[][]
  /** jobs that did not run */
  failed?: number
}

/** Rates are several rates over time, in operations per second. */
export interface Rates {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  rate: number[][]
}

/** Timeline is the load driver's view of a trial. See the package comment for rates and latencies. */
export interface Timeline {
  /** seconds per bin */
  bin_s: number
  /** start of each bin, in seconds of the measurement */
  t: number[]
  /** operations per second */
  ok: number[]
  failed: number[]
  unknown: number[]
  dropped: number[]
  service_p50: number[]
  service_p99: number[]
  service_p999: number[]
  response_p50: number[]
  response_p99: number[]
  response_p999: number[]
  in_flight: number[]
}
