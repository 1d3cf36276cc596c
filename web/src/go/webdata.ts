// Made by "make docs" from the types of internal/report/webdata.
import type { Assertion, Audit, Bound, ErrorCount, EventImpact, Fidelity, File, LatencyBound, LinkFidelity, OperationSummary, Outcomes, Replaced, Verdict } from './record'
import type { Highlight, Tally } from './report'
import type { Band, Curve, Heat, Network, Nodes, Operations, Probes, Rates, Timeline } from './series'

/** Axis is a parameter and its values in order. */
export interface Axis {
  name: string
  label: string
  values: string[]
}

/** Cell is one combination of parameters with all of its repetitions. */
export interface Cell {
  label: string
  /** of each varying parameter the place of its value */
  values: number[]
  planned: number
  /** IDs */
  trials: number[]
  weak?: boolean
  /** whose latency it is */
  operation?: string
  verdict: string
  /** what bound its throughput */
  bound?: string
  /** what made its 99th percentile */
  made_by?: string
  /** estimates by metric, over repetitions. */
  estimates: Record<string, Estimate>
  /** latencies are the latency metrics of each kind of operation, the leading one first. */
  latencies: Latencies[]
}

/** Cloud is where nodes stand and what links them. */
export interface Cloud {
  sites: Site[]
  nodes: Node[]
  links: CloudLink[]
  /** links that are left out */
  left?: number
}

/**
 * CloudLink joins Nodes[A] and Nodes[B]: round trip in milliseconds and the smaller bandwidth
 * in bits a second, 0 for none, as set before any event.
 */
export interface CloudLink {
  id: string
  a: number
  b: number
  rtt_ms: number
  bps?: number
}

/** Detail is the document of a trial. All series of one struct are of one length. */
export interface Detail {
  schema: string
  id: number
  timeline?: Timeline
  /** pools are the goodputs of workloads side by side, Errors what did not end ok, by class. */
  pools?: Rates
  errors?: Rates
  nodes?: Nodes
  network?: Network
  bands?: Band[]
  /** operations and Probes tell the 95th percentile by kind of operation. */
  operations?: Operations
  probes?: Probes
  curves?: Curve[]
  heat?: Heat
  traffic?: Traffic
  cloud?: Cloud
  /** links are set against measured. */
  links?: LinkFidelity[]
  /** what could not be read */
  notes?: string[]
}

/**
 * Estimate is a mean with the half-width of its 95 % confidence interval. Within says that
 * the interval is over the batches of the only repetition.
 */
export interface Estimate {
  n: number
  mean: number
  sd?: number
  half?: number
  within?: boolean
}

/** Latencies are those of one kind of operation, by metric. */
export interface Latencies {
  operation: string
  estimates: Record<string, Estimate>
}

/** Metric is a figure that every trial has. */
export interface Metric {
  id: string
  label: string
  /** unit names how it is written: ops, us, bytes, share, s, cores. */
  unit: string
  /** better is "higher", "lower" or "". */
  better?: string
  /** latency says that it is of one kind of operation, which a reader picks. */
  latency?: boolean
}

/** Node stands at Sites[Site]. */
export interface Node {
  name: string
  site: number
  role: string
}

/** Run is the document of a run. */
export interface Run {
  schema: string
  name: string
  description?: string
  /** its name */
  directory: string
  /** how many trials ended how */
  state: string
  unfinished?: string
  running?: boolean
  tally: Tally
  started: string
  finished?: string
  /** as it was given */
  command: string[]
  /** a shell's line that runs it again */
  again: string
  file: File
  /** as expanded, JSON */
  experiment?: string
  /** a uint64, which JavaScript's numbers cannot hold */
  seed: string
  /** name and value */
  environment: [string, string][]
  warnings?: string[]
  /** what could not be read */
  notes?: string[]
  highlights: Highlight[]
  findings: string[]
  vary: Axis[]
  fixed: Axis[]
  metrics: Metric[]
  /** kinds that some cell has, the most common first */
  operations: string[]
  cells: Cell[]
  trials: Trial[]
  /** of the trials, as they were run */
  order?: number[]
}

/** Site is a place; Lat and Lon are degrees where Located. */
export interface Site {
  name: string
  lat?: number
  lon?: number
  located?: boolean
}

/** Traffic is bytes from node to node: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]]. */
export interface Traffic {
  nodes: string[]
  from: number[]
  to: number[]
  bytes: number[]
  /** left counts pairs that are left out since others exchanged more. */
  left?: number
}

/** Trial is one trial in short. */
export interface Trial {
  id: number
  /** place among the cells */
  cell: number
  repetition: number
  name: string
  state: string
  error?: string
  stopped?: string
  duration_s: number
  warmup_s: number
  setup_s: number
  verdict: Verdict
  bound?: Bound
  /** latency_bound is what made its response times. */
  latency_bound?: LatencyBound
  outcomes: Outcomes
  retries?: number
  /** values by metric. */
  values: Record<string, number>
  goodput_half?: number
  operations?: Record<string, OperationSummary>
  errors?: ErrorCount[]
  events?: EventImpact[]
  audit?: Audit
  assertions?: Assertion[]
  /** its links stand in the Detail */
  fidelity: Fidelity
  /** replaced are the attempts that this one stands in for. */
  replaced?: Replaced[]
  /** detail says that the trial has a document of its own. */
  detail: boolean
}

export const schema = 'skerry/web/v1'
