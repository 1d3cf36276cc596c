// Made by "make docs" from the types of internal/record.

/** Assertion is one line of an experiment's assert, with its result. */
export interface Assertion {
  text: string
  held: boolean
  /** value is the measured value, in the notation of the line; "" if the trial has none. */
  value: string
  /**
   * measured is the value as a number in seconds, bytes, operations per second or cores, or a share of 0 to 1,
   * according to Unit; absent if the trial has none. AtLeast marks a lower bound.
   */
  measured?: number
  /** unit is s, B, /s, cores, % for a share, or absent for a count. */
  unit?: string
  at_least?: boolean
}

/** Audit is the result of reading every acknowledged write back. docs/audit.md defines every figure. */
export interface Audit {
  /**
   * acknowledged_writes, InDoubt and Refused count the writes of the trial by outcome, including the warm-up's. Keys counts
   * the records that were read back, including those of the load.
   */
  acknowledged_writes: number
  writes_in_doubt: number
  writes_refused: number
  audited_keys: number
  /** lost_writes counts acknowledged writes that no copy has. */
  lost_writes: number
  /**
   * stale_copies counts copies that held an older value than acknowledged, while another copy, or the same copy later, held
   * the newer value.
   */
  stale_copies: number
  /** unexpected_values counts values that were never written, or whose write was refused. */
  unexpected_values: number
  /** unread_keys counts records that could not be read. */
  unread_keys: number
  replicas?: ReplicaAudit[]
  audit_s: number
  history?: HistoryAudit
}

/** Bound is what limited a trial's throughput, with the evidence (evidence/bottleneck has the rules). */
export interface Bound {
  /** by is target, client, machine, node, bandwidth, distance or database. */
  by: string
  /** the node, or FROM~TO of the link */
  what?: string
  text: string
  /** waiting is the mean number of concurrent operations: throughput times latency. */
  waiting: number
  /** mean of all operations */
  latency_ms: number
  /** of the client, weighted by traffic */
  round_trip_ms: number
  /**
   * Utilisations of the machine's and the client's cores, of the busiest node's cores, and of the fullest direction
   * of a link.
   */
  machine_share: number
  client_share: number
  node_share: number
  link_share: number
}

/** Carried is the traffic of links in the seconds before an event. */
export interface Carried {
  /** bytes_s is in bytes per second, both directions together; Share is the part of all links' traffic. */
  bytes_s: number
  share: number
}

/** Changes counts changed directions of links, by the observed outcome. */
export interface Changes {
  directions: number
  in_effect: number
  no_packet: number
  superseded: number
  unconfirmed: number
  /** worst is the unconfirmed change that most packets crossed. */
  worst?: Unconfirmed
}

/** Condition is the condition of a link or a node. */
export type Condition = (typeof everyCondition)[number]
export const everyCondition = ['up', 'changed', 'down'] as const

/**
 * Effect is what an event does to its targets. Reports, maps and the runner of events depend on the effect and not on
 * the kind of an event, so that they handle a new kind without changes.
 *
 * 	            begun                complete                  reverted
 * 	settles     │◄── in force ──────►│ the targets keep the new condition
 * 	otherwise   │◄── in force ────────────────────────────────►│ the targets return to their old condition
 *
 * The reversal of a settling event settles too, and sets the opposite condition.
 */
export interface Effect {
  on: Scope
  makes: Condition
  /** settles is true if the event ends when its change is complete. */
  settles?: boolean
  /** member is the change of the targets' membership of the database. The end of a trial does not revert it. */
  member?: Membership
}

/** Engine is the selected link engine and the reason. */
export interface Engine {
  name: string
  why: string
}

/** ErrorCount counts operations that did not end ok, by class and node. */
export interface ErrorCount {
  operation: string
  /** failed or unknown */
  outcome: string
  class: string
  node?: string
  count: number
  example?: string
}

/** ErrorSecond is one row of errors.parquet: operations of one kind that did not end ok in one second, for one reason. */
export interface ErrorSecond {
  t: number
  operation: string
  /** failed or unknown */
  outcome: string
  class: string
  node?: string
  count: number
}

/**
 * Event is one line of events.jsonl. An event of the experiment has an ID and is written again at every change of its
 * state; only the last line of an ID counts, and Dir.Events returns only that.
 */
export interface Event {
  /** t is the time in seconds since the measurement began at which the event began, or was due if it never began. */
  t: number
  /** "scale", "drift", or that of an experiment's event, by its key there */
  kind: string
  message: string
  /** id numbers the events of the experiment from 1; 0 marks any other entry. */
  id?: number
  /**
   * entry is the index in the experiment's list of events, from 0; Turn counts the occurrences of that entry, from 1;
   * Name is the entry's name, or "". Entry is -1 if Source fired the event.
   */
  entry?: number
  turn?: number
  name?: string
  /** source is SourceUI for an event fired from the dashboard, "" for an event of the experiment. */
  source?: string
  /** effect is what the event does to its targets; nil for entries that are not events of an experiment. */
  effect?: Effect
  /** targets are names of nodes or links. */
  targets?: string[]
  /** carried is what the links among its targets carried just before; nil if unknown. */
  carried?: Carried
  /** spec is the entry as written in the experiment. */
  spec?: unknown
  /** state is one of the EventX constants. */
  state?: string
  /**
   * apply is the change; Revert is its reversal, nil before it is due and for events that are never reverted (a
   * member that left).
   */
  apply?: Step
  revert?: Step
  /** observed is what the emulator observed after a step of the drift; nil if it was not checked. */
  observed?: Observed
  /** error is why the event failed or was skipped. */
  error?: string
}

/** EventImpact is one event of a trial and its effect on the clients' operations. */
export interface EventImpact {
  /** name is the event's name in assertions: the name in the experiment, else its kind. */
  name: string
  kind: string
  /** source is that of the Event. */
  source?: string
  /** effect is that of the Event. */
  effect?: Effect
  /** at_s and RevertedS are when the event took effect and was reverted, in seconds since the measurement began. */
  at_s: number
  reverted_s?: number
  /** accepted_s and CompleteS belong to changes of membership, in seconds since the request. */
  accepted_s?: number
  complete_s?: number
  /** that of the Event */
  carried?: Carried
  recovery: Recovery
}

/** Fidelity is the evidence that the emulation was accurate. */
export interface Fidelity {
  engine: string
  links: LinkFidelity[]
  /** worst_rtt_error_ms is the largest |measured - set| of a link's median RTT. */
  worst_rtt_error_ms: number
  /** worst_bandwidth_error is the largest relative error of a measured bandwidth. */
  worst_bandwidth_error: number
  /**
   * emulator_late_p99_us is the lateness with which the emulator delivered packets during the measurement; negative if
   * the engine cannot report it.
   */
  emulator_late_p99_us: number
  emulator_drops: number
  /** event_late_p99_us is the lateness with which the experiment's events began. */
  event_late_p99_us?: number
  /** client_cpu_cores is the cores that the load driver used. */
  client_cpu_cores: number
  /** client_late_p99_us is the lateness with which the driver sent operations. */
  client_late_p99_us: number
  host_cpu_cores: number
  host_cpu_cores_max_1s: number
  host_cores: number
  /** of the host's CPU time */
  steal_share: number
  /**
   * others_cpu_cores is the mean number of cores that processes outside the run used; nil in runs of older versions, and if
   * unknown for the reason OthersUnknown.
   */
  others_cpu_cores?: number
  others_not_known?: string
  /**
   * machines are the machines of the lab, if it used a machines file. The host's figures are then totals over all
   * machines, and lateness is that of the worst one.
   */
  machines?: MachineFidelity[]
  /**
   * own_cpu_cores is the mean number of cores that the trial's own processes used; OwnMemory is the maximum memory of its
   * nodes.
   */
  own_cpu_cores?: number
  own_memory_bytes?: number
  /** account is what the emulator observed on links during the measurement; nil in runs of older versions. */
  account?: LinkAccount
  /** stolen is the effect of CPU time stolen from the driver; nil in runs of older versions. */
  stolen?: Stolen
}

/** Figures are the figures that a verdict covers; response times in microseconds. */
export interface Figures {
  goodput_ops_s: number
  p50_us: number
  p95_us: number
  p99_us: number
}

/** File is a text file given to a run. */
export interface File {
  path?: string
  text?: string
  /** set and Fast are the options --set and --fast. */
  set?: string[]
  fast?: boolean
  /** from are the database builds of the option --from. */
  from?: string[]
}

/** HistoryAudit is the linearizability check of a few records' whole history. */
export interface HistoryAudit {
  history_keys: number
  history_operations: number
  /** result is linearizable, violated, or undecided if the check ran out of time. */
  result: string
  /** violated lists the record and field of each violation. */
  violated?: string[]
}

/** Jitter compares the spread of one direction's delays with its setting. */
export interface Jitter {
  link: string
  from: string
  to: string
  /** mean delay less queue and latency; 0 is right */
  mean_ms: number
  /** mean_limit_ms is the tolerance of the mean. */
  mean_limit_ms: number
  sd_ms: number
  set_sd_ms: number
  least_sd_ms: number
  most_sd_ms: number
}

/** Latency describes the operations that ended ok, in microseconds. */
export interface Latency {
  mean: number
  p50: number
  p95: number
  p99: number
  p999: number
  max: number
}

/** LatencyBound explains the median and the 99th percentile of the response time of all operations. */
export interface LatencyBound {
  p50: LatencyCause
  p99: LatencyCause
}

/** LatencyCause explains one percentile of the response time, with the evidence (evidence/bottleneck has the rules). */
export interface LatencyCause {
  /**
   * by is distance, machine (servers waited for a processor), client (the driver waited for a processor), node
   * (quotas), disk, queue or database.
   */
  by: string
  /** FROM~TO of the link */
  what?: string
  text: string
  /** of_machine is true if the machine's processors or disk are the cause, and not the database or the emulated cloud. */
  of_machine?: boolean
  /**
   * latency_ms is the percentile; the other fields are the parts of each wait in it. The parts may overlap, and their
   * sum may exceed the percentile.
   */
  latency_ms: number
  round_trip_ms: number
  servers_processor_ms: number
  servers_quota_ms: number
  servers_disk_ms: number
  client_processor_ms: number
  queue_ms: number
  /** not_known lists what could not be measured. */
  not_known?: string[]
}

/**
 * LawViolation describes the packets that broke a law in one direction, in the second T, or in the whole measurement if
 * T is -1.
 */
export interface LawViolation {
  law: string
  link: string
  from: string
  to: string
  t: number
  /** that broke it */
  packets: number
  /** delivered */
  of: number
  worst_ms: number
  /**
   * beyond is true if more packets than the tolerance broke the law; Times is the number of seconds of directions in
   * which that happened.
   */
  beyond?: boolean
  times?: number
  /** total is the number of packets of all directions that broke the law during the measurement. */
  total: number
}

/** LinkAccount summarises what the emulator observed on links while a trial measured. */
export interface LinkAccount {
  /** not_measured is the reason if there is no account; no other field is set then. */
  not_measured?: string
  /** directions of links that carried packets, and the number of packets; a super-packet counts as one. */
  directions?: number
  packets?: number
  /** broken lists the violated laws, each with its worst case. */
  broken?: LawViolation[]
  /** jitter describes the direction that is farthest from its setting; nil if no direction could be judged. */
  jitter?: Jitter
  /** changes of directions by events and drift. */
  changes?: Changes
}

/**
 * LinkFidelity compares one link with its settings. Links are measured before the workload starts, so that the result
 * shows the emulator and not a queue.
 */
export interface LinkFidelity {
  id: string
  from: string
  to: string
  set_rtt_ms: number
  /**
   * real marks a real link. It has no settings, so the set values and the error are 0. Seen is its behaviour during
   * the trial.
   */
  real?: boolean
  seen?: LinkSeen
  /** set_jitter_ms is the jitter of both directions together; the median may deviate by it. */
  set_jitter_ms?: number
  /** answered is true if any echo returned; otherwise the figures are 0. */
  answered: boolean
  /** median */
  rtt_ms: number
  rtt_p99_ms: number
  /** median - set */
  rtt_error_ms: number
  /** Bits per second of layer 3, 0 if unlimited or not measured; AB is From to To. */
  set_ab_bps?: number
  ab_bps?: number
  set_ba_bps?: number
  ba_bps?: number
  /** train_lost is true if no packet train arrived in a direction that loses nothing. */
  train_lost?: boolean
  /** train_disturbed is true if the machine held up every train, so that a bandwidth is unknown. */
  train_disturbed?: boolean
  /** train_starved is true if a sender could not saturate a direction, so that a bandwidth is unknown. */
  train_starved?: boolean
}

/** LinkSeen describes a real link during the measurement, over all echoes. */
export interface LinkSeen {
  sent: number
  lost: number
  rtt_min_ms: number
  /** Median, 99th percentile and maximum of the round trips; JitterMS is their standard deviation. */
  rtt_median_ms: number
  rtt_p99_ms: number
  rtt_max_ms: number
  jitter_ms: number
}

/** Machine is the host of the run. */
export interface Machine {
  name: string
  /** "Debian GNU/Linux 12 (bookworm)" */
  os: string
  /** release */
  kernel: string
  /** model */
  cpu: string
  cores: number
  memory_bytes: number
}

/** MachineFidelity describes one of several machines that ran a trial. */
export interface MachineFidelity {
  name: string
  kernel: string
  nodes: string[]
  /** cpu_cores is the mean number of busy cores, out of Cores; StealShare is a share of the CPU time. */
  cpu_cores: number
  cores: number
  steal_share: number
  /** emulator_late_p99_us is the lateness of its emulator; negative if the engine cannot report it. */
  emulator_late_p99_us: number
  /**
   * The machine's clock was ClockAheadUS ahead of the controller's when the measurement began, plus or minus
   * ClockUncertainUS. It moved by ClockMovedUS during the measurement.
   */
  clock_ahead_us: number
  clock_uncertain_us: number
  clock_moved_us: number
}

/**
 * MemberStep is the upgrade of one member. It is accepted when the old version has ended, and complete when the database
 * reports that the member serves and has caught up with the new one.
 */
export interface MemberStep {
  node: string
  /** from and To are the versions before and after. */
  from: string
  to: string
  began: Moment
  accepted?: Moment
  completed?: Moment
}

/** Membership is a change of the members of a database. */
export type Membership = (typeof everyMembership)[number]
export const everyMembership = ['leave', 'join', 'upgrade'] as const

/** Moment is a time on two clocks. */
export interface Moment {
  /** since the measurement began */
  ns: number
  wall: string
}

/**
 * NetworkSecond is one row of network.parquet: the round trips between the nodes in one second, if an overlay routes
 * packets; otherwise over real links only.
 */
export interface NetworkSecond {
  t: number
  /** rtt_mean_ms and Worst round trip over all pairs of nodes, or real links, that answered. */
  rtt_mean_ms: number
  rtt_worst_ms: number
  /** pairs is the number of probed pairs; Unreachable of them did not answer. */
  pairs: number
  unreachable: number
}

/**
 * NodeSecond is one row of nodes.parquet: one node in one second. The nodes "@emulator", "@host" and "@wireguard" are
 * the emulator, the machine and the process of encrypted links.
 */
export interface NodeSecond {
  t: number
  node: string
  cpu_cores: number
  throttled_cores: number
  memory_bytes: number
  read_bytes: number
  wrote_bytes: number
  rx_bytes: number
  tx_bytes: number
  /**
   * user_cores and System are parts of CPU. Steal is CPU time that neighbours of the node's flavor, or the machine's
   * hypervisor, withheld. Credits is the balance of a flavor with CPU credits. Foreign is the machine's CPU time that
   * processes outside the trial used.
   */
  user_cores: number
  system_cores: number
  steal_cores: number
  credits?: number
  foreign_cores?: number
  /**
   * processor_wait_s sums, over the node's threads, the time ready to run but waiting for a processor. DiskWait is the
   * part of the second in which at least one thread waited for a disk.
   */
  processor_wait_s?: number
  disk_wait_s?: number
}

/** Notes is notes.json: a user's notes on a run. They may change at any time, also during the run. */
export interface Notes {
  schema: string
  /** revision counts the changes; a writer states the revision that it read. */
  revision: number
  changed?: string
  note?: string
  tags?: string[]
}

/** Observed is what the emulator observed after one change of links. */
export interface Observed {
  /** set is when the emulator had received all changes. */
  set: Moment
  /** in_effect is when a packet had obeyed the last confirmed change; nil if none was confirmed. */
  in_effect?: Moment
  /**
   * directions that changed. A packet obeyed the change on Confirmed directions; no packet crossed NoPacket
   * directions; Superseded directions changed again before a packet obeyed. On Unconfirmed directions packets crossed
   * and none obeyed.
   */
  directions: number
  confirmed: number
  no_packet?: number
  superseded?: number
  unconfirmed?: Unconfirmed[]
}

/**
 * OperationSecond is one kind of operation in one second: those that ended ok, and their response times. It feeds the
 * live view; afterwards the histograms have the same data.
 */
export interface OperationSecond {
  t: number
  operation: string
  ok: number
  p50_us: number
  p95_us: number
  p99_us: number
}

/** OperationSummary is one kind of operation. */
export interface OperationSummary {
  /** that ended ok */
  count: number
  /** failed or unknown */
  failed: number
  /** sent to done */
  service_us: Latency
  /** intended to done */
  response_us: Latency
}

/** Outcomes counts operations of the measurement. */
export interface Outcomes {
  ok: number
  failed: number
  unknown: number
  dropped: number
}

/** PoolSecond is one row of pools.parquet, which exists if several workloads run side by side. */
export interface PoolSecond extends Second {
  pool: string
}

/** RanCommand is a command of the user that has ended. */
export interface RanCommand {
  /** do, until or undo */
  name: string
  /** with the template filled in */
  text: string
  /**
   * exit is the exit status, -1 if a signal ended the command. Output is the end of its output. Of until they are
   * those of the last try.
   */
  exit: number
  output?: string
}

/**
 * Recovery compares the seconds from an event to the next event, or to the end of the measurement, with the seconds
 * before it. docs/recovery.md defines every figure.
 */
export interface Recovery {
  /** baseline_s is the length of the period before the event. If it is 0, only figures that need no baseline are set. */
  baseline_s: number
  baseline_ops_s: number
  baseline_p99_us: number
  /** watched_s is the length of the period after the event. */
  watched_s: number
  /** availability by requests and by time: shares of 0 to 1. */
  availability: number
  availability_time: number
  /** unresponsive_periods are runs of seconds without any ok operation. */
  unresponsive_periods: number
  unresponsive_s: number
  longest_unresponsive_s: number
  /** takeover_s is when the first write after the event was acknowledged; absent if none was. */
  takeover_s?: number
  /** recover_s is the time until recovery. If Censored, no recovery was observed, and RecoverS is the observed time. */
  recover_s: number
  censored?: boolean
  /**
   * dip_depth is the share of the baseline that was missing in the worst second. DipOps are the operations missing
   * until recovery. OvershootOps are those above the baseline, counted separately.
   */
  dip_depth: number
  dip_ops: number
  overshoot_ops: number
  /** sla_violation_s is the time in seconds that violated the service level. */
  sla_violation_s: number
}

/** Replaced is an attempt that measured and was repeated. Its directory is kept; its figures do not count. */
export interface Replaced {
  /** within the run directory */
  dir: string
  started: string
  goodput_ops_s: number
  verdict: Verdict
}

/** ReplicaAudit is what one member held of the audited records. */
export interface ReplicaAudit {
  node: string
  /**
   * held_keys counts records on the member. Stale counts those that remained older than acknowledged until the end of the
   * audit.
   */
  held_keys: number
  stale_copies: number
  unexpected_values: number
  unread_keys: number
  /** why it could not be read */
  error?: string
}

/** Scope is the kind of an event's targets. */
export type Scope = (typeof everyScope)[number]
export const everyScope = ['links', 'nodes', 'streams'] as const

/** Second is one row of timeline.parquet: one second of a trial as the driver measured it. */
export interface Second {
  /** seconds since the measurement began; negative in warm-up */
  t: number
  /** of the bin: the last one of a trial is shorter */
  length_s: number
  ok: number
  failed: number
  unknown: number
  dropped: number
  service_p50_us: number
  service_p95_us: number
  service_p99_us: number
  service_p999_us: number
  service_max_us: number
  response_p50_us: number
  /** 0 in runs of 0.1 */
  response_p95_us: number
  response_p99_us: number
  response_p999_us: number
  client_cpu_cores: number
  in_flight: number
  /** stolen_s is the time during which the driver waited for a processor that another program had. */
  stolen_s?: number
}

/**
 * Step is one change by an event. It is accepted when its command reports success, and complete when the change is
 * really done, as the database reports for its members. For changes that take effect at once, the two are equal.
 */
export interface Step {
  due: Moment
  began?: Moment
  accepted?: Moment
  completed?: Moment
  /** moved data, if the database reports it */
  bytes?: number
  /** members are the changes of single members, in order, of a step that replaces them one after the other. */
  members?: MemberStep[]
  /** observed is what the emulator observed after a change of links; nil if nothing was observed. */
  observed?: Observed
  /** commands are the commands of the user that the step ran. */
  commands?: RanCommand[]
}

/**
 * Stolen compares a measurement with the rest that remains without the stretches in which another program had the
 * driver's processor (evidence/verdict has the rules).
 */
export interface Stolen {
  /** of the measurement that is marked */
  share: number
  marked_s: number
  /** operations that ended ok and neither began nor ended in a mark */
  left: number
  /**
   * The driver's lateness, 99th percentile: outside the marked stretches, and in the seconds in which the driver had
   * not saturated its cores.
   */
  late_left_p99_us: number
  late_not_full_p99_us: number
  all: Figures
  without: Figures
  /** moved is the largest relative change of these figures; MovedBy names the figure. */
  moved: number
  moved_by?: string
  /**
   * own_trials is true if concurrent trials of the run had the processors: other programs and the hypervisor used
   * little.
   */
  own_trials?: boolean
}

/** Unconfirmed is a changed direction whose packets did not obey the change. */
export interface Unconfirmed {
  link: string
  /** from its end B to A */
  back?: boolean
  /** when it was set */
  at_s: number
  /** that crossed */
  packets: number
}

/** Verdict states whether the trial is valid. */
export interface Verdict {
  /** valid | suspect */
  state: string
  reasons?: string[]
  /** kinds has the kind of each reason, in the same order (see evidence/verdict). */
  kinds?: string[]
  /** notes are disturbances of the machine that did not change the figures. */
  notes?: string[]
}
