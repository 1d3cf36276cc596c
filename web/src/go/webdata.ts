// Made by "make docs" from the types of internal/report/webdata.
import type { Assertion, Audit, Bound, ErrorCount, EventImpact, Fidelity, File, LatencyBound, LinkFidelity, OperationSummary, Outcomes, Replaced, Verdict } from './record'
import type { Highlight, Tally } from './report'
import type { Band, Curve, Heat, Network, Nodes, Operations, Probes, Rates, Timeline } from './series'

/** Axis is a parameter with its values, sorted. */
export interface Axis {
  name: string
  label: string
  values: string[]
}

/** Cell is one combination of parameters with all of its repetitions. */
export interface Cell {
  label: string
  /** for each axis of Vary, the index of its value */
  values: number[]
  planned: number
  /** IDs */
  trials: number[]
  weak?: boolean
  /** kind of operation behind the latency metrics */
  operation?: string
  verdict: string
  /** bottleneck of the throughput */
  bound?: string
  /** main cause of the 99th percentile */
  made_by?: string
  /** estimates are means over repetitions, by metric. */
  estimates: Record<string, Estimate>
  /** latencies are the latency metrics of one kind of operation. */
  latencies: Latencies[]
}

/** Cloud is where nodes stand and what links them. */
export interface Cloud {
  sites: Site[]
  nodes: Node[]
  links: CloudLink[]
  /** number of omitted links */
  left?: number
}

/**
 * CloudLink joins Nodes[A] and Nodes[B]. It has the initial round trip in milliseconds and the
 * smaller bandwidth in bit/s, 0 for unlimited.
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
  /** pools is the goodput by workload. Errors are unsuccessful operations by class. */
  pools?: Rates
  errors?: Rates
  nodes?: Nodes
  network?: Network
  bands?: Band[]
  /** operations and Probes hold the 95th percentile by kind of operation. */
  operations?: Operations
  probes?: Probes
  curves?: Curve[]
  heat?: Heat
  /** traffic counts bytes between nodes: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]]. */
  traffic?: Traffic
  /** cloud is the map of sites, nodes and links. */
  cloud?: Cloud
  /** links compare configured with measured round trips. */
  links?: LinkFidelity[]
  /** unreadable files */
  notes?: string[]
}

/**
 * Estimate is a mean with the half-width of its 95 % confidence interval. Within is set if the
 * interval is over the batches of the only repetition.
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
  /** unit is ops, us, bytes, share, s or cores. */
  unit: string
  /** latency marks a metric of one kind of operation, which the reader selects. */
  latency?: boolean
}

/** Node is located at Sites[Site]. */
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
  /** command line */
  command: string[]
  /** shell command that repeats the run */
  again: string
  file: File
  /** expanded experiment, JSON */
  experiment?: string
  /** uint64, too large for a JavaScript number */
  seed: string
  /** name and value */
  environment: [string, string][]
  warnings?: string[]
  /** unreadable files */
  notes?: string[]
  highlights: Highlight[]
  findings: string[]
  vary: Axis[]
  fixed: Axis[]
  metrics: Metric[]
  /** kinds of operation, the most common first */
  operations: string[]
  cells: Cell[]
  trials: Trial[]
  /** trial IDs in order of execution */
  order?: number[]
}

/** Site is a location. Lat and Lon are degrees, valid if Located. */
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
  /** left counts omitted pairs with less traffic. */
  left?: number
}

/** Trial is the summary of one trial. */
export interface Trial {
  id: number
  /** index in Run.Cells */
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
  /** latency_bound explains the response times. */
  latency_bound?: LatencyBound
  outcomes: Outcomes
  /** values by metric. */
  values: Record<string, number>
  goodput_half?: number
  operations?: Record<string, OperationSummary>
  errors?: ErrorCount[]
  events?: EventImpact[]
  audit?: Audit
  assertions?: Assertion[]
  /** without links, which are in the Detail */
  fidelity: Fidelity
  /** replaced are earlier attempts at this trial. */
  replaced?: Replaced[]
  /** detail is the document of a trial. All series of one struct have the same length. */
  detail: boolean
}

export const schema = 'skerry/web/v1'
