// The documents that package webdata makes of a run, as docs/report.md describes them.

export const schema = 'skerry/web/v1'

export interface Axis { name: string; label: string; values: string[] }
export interface Metric { id: string; label: string; unit: string; better?: 'higher' | 'lower' | '' }
/** Mean over n repetitions; half is the half-width of its 95 % confidence interval. */
export interface Estimate { n: number; mean: number; sd?: number; half?: number; within?: boolean }
export interface Highlight { kind: string; text: string; trial?: number; bad?: boolean }
export interface Tally { planned: number; valid: number; suspect: number; failed: number; interrupted: number; missing: number }
export interface Cell {
  label: string; values: number[]; planned: number; trials: number[]; weak?: boolean; operation?: string; verdict: string
  estimates: Record<string, Estimate>
}
export interface Latency { mean: number; p50: number; p95: number; p99: number; p999: number; max: number }
export interface Recovery {
  baseline_s: number; baseline_ops_s: number; baseline_p99_us: number; watched_s: number; availability: number; availability_time: number
  unresponsive_periods: number; unresponsive_s: number; longest_unresponsive_s: number; takeover_s?: number; recover_s: number; censored?: boolean
  dip_depth: number; dip_ops: number; overshoot_ops: number; sla_violation_s: number
}
export interface Happening { name: string; kind: string; at_s: number; reverted_s?: number; accepted_s?: number; complete_s?: number; recovery: Recovery }
export interface ErrorCount { operation: string; outcome: string; class: string; node?: string; count: number; example?: string }
export interface Audit {
  acknowledged_writes: number; writes_in_doubt: number; writes_refused: number; audited_keys: number; lost_writes: number; stale_copies: number
  unexpected_values: number; unread_keys: number; history?: { history_keys: number; history_operations: number; result: string }
}
export interface Fidelity {
  engine: string; worst_rtt_error_ms: number; worst_bandwidth_error: number; emulator_late_p99_us: number; emulator_drops: number; event_late_p99_us?: number
  client_cpu_cores: number; client_late_p99_us: number; host_cpu_cores: number; host_cpu_cores_max_1s: number; host_cores: number; steal_share: number
}
export interface Outcomes { ok: number; failed: number; unknown: number; dropped: number }
export interface Trial {
  id: number; cell: number; repetition: number; name: string; state: string; error?: string; stopped?: string
  duration_s: number; warmup_s: number; setup_s: number; verdict: { state: string; reasons?: string[] }; outcomes: Outcomes; retries?: number
  values: Record<string, number>; goodput_half?: number
  operations?: Record<string, { count: number; failed: number; service_us: Latency; response_us: Latency }>
  errors?: ErrorCount[]; events?: Happening[]; audit?: Audit; assertions?: { text: string; held: boolean; value: string }[]
  fidelity: Fidelity; detail: boolean
}
export interface Run {
  schema: string; name: string; description?: string; directory: string; state: string; unfinished?: string; running?: boolean; tally: Tally
  started: string; finished?: string; command: string[] | null; again: string; file: { path?: string; text?: string }; experiment?: string; seed: string
  environment: [string, string][]; warnings?: string[]; notes?: string[]; highlights: Highlight[] | null; findings: string[] | null
  vary: Axis[]; fixed: Axis[]; metrics: Metric[]; cells: Cell[]; trials: Trial[]; order?: number[]
}

export interface Timeline {
  bin_s: number; t: number[]; ok: number[]; failed: number[]; unknown: number[]; dropped: number[]
  service_p50: number[]; service_p99: number[]; service_p999: number[]; response_p50: number[]; response_p99: number[]; response_p999: number[]; in_flight: number[]
}
export interface Operations { bin_s: number; t: number[]; names: string[]; p95: number[][] }
export interface Probes { t: number[]; names: string[]; p95: number[][]; failed?: number }
export interface NodeUse { cpu: number[]; memory: number[]; read: number[]; wrote: number[]; rx: number[]; tx: number[] }
export interface Nodes { bin_s: number; t: number[]; names: string[]; series: NodeUse[]; hidden?: number }
export interface Network { bin_s: number; t: number[]; mean_ms: number[]; worst_ms: number[]; unreachable: number[] }
export interface Band {
  name: string; kind: string; text: string; from: number; to?: number; targets?: string[]; state?: string; error?: string; late_ms?: number
  accepted_s?: number; complete_s?: number; moved?: number
}
export interface Curve { operation: string; clock: string; count: number; tail: number[]; us: number[] }
export interface Heat { clock: string; bin_s: number; t: number[]; edges: number[]; counts: number[][] }
export interface Traffic { nodes: string[]; from: number[]; to: number[]; bytes: number[]; left?: number }
export interface Site { name: string; lat?: number; lon?: number; located?: boolean }
export interface CloudNode { name: string; site: number; role: string }
export interface CloudLink { id: string; a: number; b: number; rtt_ms: number; bps?: number }
export interface Cloud { sites: Site[] | null; nodes: CloudNode[] | null; links: CloudLink[] | null; left?: number }
export interface LinkFidelity {
  id: string; from: string; to: string; set_rtt_ms: number; set_jitter_ms?: number; answered: boolean; rtt_ms: number; rtt_p99_ms: number; rtt_error_ms: number
  set_ab_bps?: number; ab_bps?: number; set_ba_bps?: number; ba_bps?: number; train_lost?: boolean
}
export interface Detail {
  schema: string; id: number; timeline?: Timeline; nodes?: Nodes; network?: Network; bands?: Band[]; curves?: Curve[]; heat?: Heat; traffic?: Traffic
  cloud?: Cloud; links?: LinkFidelity[]; notes?: string[]; operations?: Operations; probes?: Probes
}
