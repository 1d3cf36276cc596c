// Made by "make docs" from the types of internal/record.

/** Account sums up what the emulator observed on links while a trial measured. */
export interface Account {
  /** not_measured is why there is none: nothing else is set then. */
  not_measured?: string
  /** directions of links that carried packets, and these packets; a super-packet counts as one. */
  directions?: number
  packets?: number
  /** broken are the laws that packets broke, each with the worst case. */
  broken?: LawViolation[]
  /** jitter is that of the direction that is farthest from its setting; nil if none could be judged. */
  jitter?: Jitter
  /** changes of directions by events and drift. */
  changes?: Changes
}

/** Assertion is one line of an experiment's assert and whether it held. */
export interface Assertion {
  text: string
  held: boolean
  /** value is what the trial measured, as the line would write it; "" where it has none. */
  value: string
  /**
   * measured is the same as a number: in seconds, bytes, operations a second or cores, or a share
   * of 0 to 1, as Unit says; absent where the trial has none. AtLeast says that it is a lower bound.
   */
  measured?: number
  /** unit is s, B, /s, cores, % for a share, or absent for a count. */
  unit?: string
  at_least?: boolean
}

/**
 * Audit is what reading every acknowledged write back found. docs/audit.md says how each
 * figure is counted.
 */
export interface Audit {
  /**
   * acknowledged_writes, InDoubt and Refused count the writes of the trial by outcome, the
   * warm-up's too; Keys the records that were read back, those of the load among them.
   */
  acknowledged_writes: number
  writes_in_doubt: number
  writes_refused: number
  audited_keys: number
  /** lost_writes counts acknowledged writes that are nowhere any more. */
  lost_writes: number
  /**
   * stale_copies counts copies that held an older value than was acknowledged, while another
   * copy, or the same one later, held the newer.
   */
  stale_copies: number
  /** unexpected_values counts values that nobody wrote there, or that were refused. */
  unexpected_values: number
  /** unread_keys counts records that could not be read. */
  unread_keys: number
  replicas?: ReplicaAudit[]
  audit_s: number
  history?: HistoryAudit
}

/** Bound says what limited a trial's throughput, with the evidence (evidence/bound has the rules). */
export interface Bound {
  /** by is target, client, machine, node, bandwidth, distance or database. */
  by: string
  /** the node, or FROM~TO of the link */
  what?: string
  text: string
  /** waiting is how many operations were under way on average: throughput times latency. */
  waiting: number
  /** mean of all operations */
  latency_ms: number
  /** of the client, by what it sent where */
  round_trip_ms: number
  /**
   * Shares of what there was: the machine's and the client's cores, those of the busiest node, and
   * the fullest direction of a link.
   */
  machine_share: number
  client_share: number
  node_share: number
  link_share: number
}

/** Carried is what links carried together in the seconds before something happened to them. */
export interface Carried {
  /** bytes_s is in bytes a second, both directions together; Share is their part of what all links carried. */
  bytes_s: number
  share: number
}

/** Changes counts directions of links that events and drift changed, by what was observed. */
export interface Changes {
  directions: number
  in_effect: number
  no_packet: number
  superseded: number
  unconfirmed: number
  /** worst is the unconfirmed one that most packets crossed. */
  worst?: Unconfirmed
}

/** Condition is what a link or a node is like. */
export type Condition = (typeof everyCondition)[number]
export const everyCondition = ['up', 'changed', 'down'] as const

/**
 * Effect is what an event does to its targets. Reports, maps and the runner of events know
 * this of an event and not its kind, so that a new kind is theirs from its first record on.
 *
 * 	            begun                complete                  taken back
 * 	settles     │◄── in force ──────►│ its targets stay so
 * 	otherwise   │◄── in force ────────────────────────────────►│ its targets are as before
 *
 * What takes a settling event back settles too, and makes of its targets the opposite.
 */
export interface Effect {
  on: Scope
  makes: Condition
  /** settles says that the event is over when its change is complete. */
  settles?: boolean
  /**
   * member is what becomes of the targets' membership of the database; the end of a trial
   * does not take such a change back.
   */
  member?: Membership
}

/** Engine is the link engine that was chosen and the reason in a sentence. */
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

/**
 * ErrorSecond is one row of errors.parquet: operations of one kind that did not end ok in one second,
 * for one reason.
 */
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
 * Event is one line of events.jsonl: something that happened in a trial. What the
 * experiment's events make happen has an ID and is written anew each time it gets on;
 * the last line of an ID tells all of it, and that alone is what Dir.Events returns.
 */
export interface Event {
  /**
   * t is seconds since the measurement began: of when it began, or was due where it
   * never did.
   */
  t: number
  /** "scale", "drift", or that of an experiment's event, by its key there */
  kind: string
  message: string
  /** id counts what the experiment's events make happen, from 1; 0 is anything else. */
  id?: number
  /**
   * entry is the place in the experiment's list of events, from 0, and Turn how often
   * that entry has made something happen, from 1; Name is the entry's, "" where it has none.
   * Entry is -1 where Source says who fired it in the experiment's stead.
   */
  entry?: number
  turn?: number
  name?: string
  /** source is SourceUI for an event fired from the dashboard, "" for the experiment's own. */
  source?: string
  /** effect is what it does to its targets; nil for what is no event of an experiment. */
  effect?: Effect
  /** targets are the nodes, or the links, that it happens to. */
  targets?: string[]
  /** carried is what the links among its targets carried just before; nil where that is not known. */
  carried?: Carried
  /** spec is the entry as the experiment has it. */
  spec?: unknown
  /** state is one of the EventX constants. */
  state?: string
  /**
   * apply is the change itself, Revert the one that took it back; nil while that is not
   * due and where it lasts to the trial's end by what it is (a member that left).
   */
  apply?: Step
  revert?: Step
  /** observed is what the emulator observed after a step of the drift; nil where that was not checked. */
  observed?: Observed
  /** error says why it failed or was skipped. */
  error?: string
}

/** EventImpact is one event of a trial and what became of the clients' operations around it. */
export interface EventImpact {
  /** name is what assertions call it: the name that the experiment gave, else its kind. */
  name: string
  kind: string
  /** source is that of the Event. */
  source?: string
  /** effect is that of the Event. */
  effect?: Effect
  /**
   * at_s is when it took effect, RevertedS when it was taken back, in seconds since the
   * measurement began.
   */
  at_s: number
  reverted_s?: number
  /** accepted_s and CompleteS are of changes of membership, in seconds since the request. */
  accepted_s?: number
  complete_s?: number
  /** that of the Event */
  carried?: Carried
  recovery: Recovery
}

/** Fidelity is the evidence that the emulation was true. */
export interface Fidelity {
  engine: string
  links: LinkFidelity[]
  /** worst_rtt_error_ms is the largest |measured - set| of a link's median RTT. */
  worst_rtt_error_ms: number
  /** worst_bandwidth_error is the largest relative error of a measured bandwidth. */
  worst_bandwidth_error: number
  /**
   * emulator_late_p99_us: how late the emulator handed packets over while the trial
   * measured; negative when the engine cannot know.
   */
  emulator_late_p99_us: number
  emulator_drops: number
  /** event_late_p99_us: how late the experiment's events began after they were due. */
  event_late_p99_us?: number
  /** CPU in cores: of the load driver, and of everything on the machine (out of HostCores). */
  client_cpu_cores: number
  /** client_late_p99_us: how late the driver sent operations after it meant to. */
  client_late_p99_us: number
  host_cpu_cores: number
  host_cpu_cores_max_1s: number
  host_cores: number
  /** of the host's CPU time */
  steal_share: number
  /**
   * others_cpu_cores is the cores that processes used, on average, that are neither the trial's nor of another trial of the
   * run; nil where that is not known, for the reason OthersUnknown, and in runs of older versions.
   */
  others_cpu_cores?: number
  others_not_known?: string
  /**
   * machines are those that the lab stood on, where it stood on machines of a machines file; the
   * figures of host are of them together then, and lateness of the worst.
   */
  machines?: MachineFidelity[]
  /**
   * own_cpu_cores is the cores that the trial's own processes used on average, OwnMemory the bytes of its
   * nodes at the most.
   */
  own_cpu_cores?: number
  own_memory_bytes?: number
  /**
   * account is what the emulator observed on links while the trial measured; nil in runs of older
   * versions.
   */
  account?: Account
  /**
   * stolen is what processors that were taken from the driver could have changed; nil in runs
   * of older versions.
   */
  stolen?: Stolen
}

/** Figures are those that a verdict is about; response times in microseconds. */
export interface Figures {
  goodput_ops_s: number
  p50_us: number
  p95_us: number
  p99_us: number
}

/** File is a text file that a run was given. */
export interface File {
  path?: string
  text?: string
  /** set and Fast are what was given beside it: --set and --fast. */
  set?: string[]
  fast?: boolean
  /** from are the builds of databases that were asked for: --from. */
  from?: string[]
}

/** HistoryAudit is the check of a few records' whole history for linearizability. */
export interface HistoryAudit {
  history_keys: number
  history_operations: number
  /** result is linearizable, violated, or undecided when time ran out. */
  result: string
  /** violated lists the record and field of each violation. */
  violated?: string[]
}

/** Jitter compares the spread of the delays of one direction with the jitter that was set. */
export interface Jitter {
  link: string
  from: string
  to: string
  /** mean delay less queue and latency; 0 is right */
  mean_ms: number
  /** mean_limit_ms is what the mean may be off by. */
  mean_limit_ms: number
  sd_ms: number
  set_sd_ms: number
  least_sd_ms: number
  most_sd_ms: number
}

/** Latency of the operations that ended ok, in microseconds. */
export interface Latency {
  mean: number
  p50: number
  p95: number
  p99: number
  p999: number
  max: number
}

/** LatencyBound says what made the median and the 99th percentile of the response time of all operations. */
export interface LatencyBound {
  p50: LatencyCause
  p99: LatencyCause
}

/** LatencyCause says what made a percentile of the response time, with the evidence (evidence/bound has the rules). */
export interface LatencyCause {
  /**
   * by is distance, machine (its processors, for which servers waited), client (the driver waited for a processor),
   * node (quotas), disk, queue or database.
   */
  by: string
  /** FROM~TO of the link */
  what?: string
  text: string
  /** of_machine says that processors or the disk of the machine made it, and not the database or the emulated cloud. */
  of_machine?: boolean
  /**
   * latency_ms is the percentile; the others are what each of the waits accounts for in it. They may overlap, and
   * their sum may be more than the whole.
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
 * LawViolation is a law that packets broke. The packets are those of one direction in the second T, or in
 * the whole measurement where T is -1.
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
  /** beyond says that these are more than the tolerance, and Times how many seconds of directions had that. */
  beyond?: boolean
  times?: number
  /** total is how many packets of all directions broke it in the measurement. */
  total: number
}

/**
 * LinkFidelity compares one link with what was asked of it. Measurement is made
 * before the workload starts, so that it sees the emulator and not the queue.
 */
export interface LinkFidelity {
  id: string
  from: string
  to: string
  set_rtt_ms: number
  /**
   * real says that the link was left as it is: nothing was asked of it, so that what is set is 0 and there is no
   * error. Seen is what it was while the trial measured.
   */
  real?: boolean
  seen?: LinkSeen
  /** set_jitter_ms is the jitter of both directions together: what the median may stray by. */
  set_jitter_ms?: number
  /** answered says whether any echo came back; without one the figures are 0. */
  answered: boolean
  /** median */
  rtt_ms: number
  rtt_p99_ms: number
  /** median - set */
  rtt_error_ms: number
  /** Bits per second of layer 3, 0 where unlimited or not measured; AB is From to To. */
  set_ab_bps?: number
  ab_bps?: number
  set_ba_bps?: number
  ba_bps?: number
  /** train_lost says that of a direction that loses nothing no packet train arrived. */
  train_lost?: boolean
  /** train_disturbed says that the machine held up every train, so that a bandwidth is not known. */
  train_disturbed?: boolean
  /** train_starved says that the sender of a direction could not keep it busy, so that a bandwidth is not known. */
  train_starved?: boolean
}

/** LinkSeen is what a real link was while the trial measured, over all echoes. */
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

/** Machine is the host that the run was made on. */
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

/** MachineFidelity is what one of several machines had to do with a trial. */
export interface MachineFidelity {
  name: string
  kernel: string
  nodes: string[]
  /** cpu_cores in cores of everything there, on average, out of Cores; StealShare of its CPU time. */
  cpu_cores: number
  cores: number
  steal_share: number
  /** emulator_late_p99_us: how late its emulator handed packets over; negative where it cannot know. */
  emulator_late_p99_us: number
  /**
   * Its clock was so far ahead of the controller's when the measurement began, within the
   * uncertainty either way, and moved by so much until its end.
   */
  clock_ahead_us: number
  clock_uncertain_us: number
  clock_moved_us: number
}

/** Membership is a change of the members of a database. */
export type Membership = (typeof everyMembership)[number]
export const everyMembership = ['leave', 'join'] as const

/** Moment is a time on both clocks. */
export interface Moment {
  /** since the measurement began */
  ns: number
  wall: string
}

/**
 * NetworkSecond is one row of network.parquet: what packets met between the nodes in one
 * second, where an overlay routes them; else over links that are real, of those alone.
 */
export interface NetworkSecond {
  t: number
  /** rtt_mean_ms and Worst round trip over all pairs of nodes, or real links, that answered. */
  rtt_mean_ms: number
  rtt_worst_ms: number
  /** pairs were asked, Unreachable of them did not answer. */
  pairs: number
  unreachable: number
}

/**
 * NodeSecond is one row of nodes.parquet: one node in one second. The emulator
 * and the host appear as the nodes "@emulator" and "@host", the process of encrypted links
 * as "@wireguard".
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
   * user_cores and System are parts of CPU; Steal is what neighbours of the node's flavor, or the
   * machine's hypervisor, kept from it. Credits is the balance of a flavor that has some.
   * Foreign is what of the machine's CPU processes used that are not of the trial.
   */
  user_cores: number
  system_cores: number
  steal_cores: number
  credits?: number
  foreign_cores?: number
  /**
   * processor_wait_s adds up, over the node's threads, the seconds that each was ready to run and waited for a
   * processor; DiskWait is for how much of the second at least one thread waited for a disk.
   */
  processor_wait_s?: number
  disk_wait_s?: number
}

/**
 * Notes is notes.json: what people wrote down about a run. It may be changed at any time,
 * while the run goes on too.
 */
export interface Notes {
  schema: string
  /** revision counts the changes; who changes notes names the one that they had read. */
  revision: number
  changed?: string
  note?: string
  tags?: string[]
}

/** Observed is what the emulator observed after one change of links. */
export interface Observed {
  /** set is when the emulator had all changes. */
  set: Moment
  /** in_effect is by when a packet had obeyed the last of the changes that were confirmed; nil without any. */
  in_effect?: Moment
  /**
   * directions that were changed. Of these a packet was observed to obey the change on Confirmed ones,
   * no packet crossed NoPacket ones, and Superseded ones were changed again before a packet did. The
   * others are Unconfirmed: packets crossed, and none obeyed.
   */
  directions: number
  confirmed: number
  no_packet?: number
  superseded?: number
  unconfirmed?: Unconfirmed[]
}

/**
 * OperationSecond is one kind of operation in one second: those that ended ok, and their response
 * times. Onlookers are told of it; of a trial that is over its histograms tell.
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

/**
 * PoolSecond is one row of pools.parquet, where several workloads run side by side: one of them in
 * one second.
 */
export interface PoolSecond extends Second {
  pool: string
}

/**
 * Recovery compares the seconds from an event to the next one, or to the end of the
 * measurement, with those before it. docs/recovery.md defines every figure.
 */
export interface Recovery {
  /**
   * baseline_s is how much time before the event was looked at; 0 when there was none, and
   * then only what needs no baseline is told.
   */
  baseline_s: number
  baseline_ops_s: number
  baseline_p99_us: number
  /** watched_s is how much time after the event was looked at. */
  watched_s: number
  /** availability by requests and by time: shares of 0 to 1. */
  availability: number
  availability_time: number
  /** unresponsive_periods are runs of seconds without any ok operation. */
  unresponsive_periods: number
  unresponsive_s: number
  longest_unresponsive_s: number
  /** takeover_s is when the first write after the event was acknowledged; absent when none was. */
  takeover_s?: number
  /**
   * recover_s is how long it took to be as before; when Censored, it was not while it was
   * watched, and RecoverS is how long that was.
   */
  recover_s: number
  censored?: boolean
  /**
   * dip_depth is the share of the baseline that was missing in the worst second, DipOps
   * the operations that were missing until it recovered, OvershootOps those above the
   * baseline, counted apart.
   */
  dip_depth: number
  dip_ops: number
  overshoot_ops: number
  /** sla_violation_s counts the seconds that broke the service level. */
  sla_violation_s: number
}

/**
 * Replaced is an attempt at a trial that measured and was run again: its directory is kept,
 * its figures count for nothing.
 */
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
   * held_keys counts records that the member holds, Stale those of them that were older
   * than what was acknowledged to the end of the audit.
   */
  held_keys: number
  stale_copies: number
  unexpected_values: number
  unread_keys: number
  /** why it could not be asked */
  error?: string
}

/** Scope is what an event happens to. */
export type Scope = (typeof everyScope)[number]
export const everyScope = ['links', 'nodes', 'streams'] as const

/** Second is one row of timeline.parquet: what the driver saw in one second of a trial. */
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
  /**
   * stolen_s is for how long the driver could not have a processor that something else than the
   * trial had.
   */
  stolen_s?: number
}

/**
 * Step is one change that an event makes. A change is accepted when the command that asks
 * for it reports success and complete when it is really done, as the database itself says
 * of its members; for what takes effect at once the two are the same moment.
 */
export interface Step {
  due: Moment
  began?: Moment
  accepted?: Moment
  completed?: Moment
  /** moved, where the database tells */
  bytes?: number
  /** observed is what the emulator observed after a change of links; nil where nothing was. */
  observed?: Observed
}

/**
 * Stolen compares a measurement with what is left of it without the stretches in which the
 * driver could not have a processor that something else had (evidence/stolen has the rules).
 */
export interface Stolen {
  /** of the measurement that is marked */
  share: number
  marked_s: number
  /** operations that ended ok and neither began nor ended in a mark */
  left: number
  /**
   * The driver's lateness, 99th percentile: outside of the marks, and in the seconds in which it
   * had not used its cores up.
   */
  late_left_p99_us: number
  late_not_full_p99_us: number
  all: Figures
  without: Figures
  /** moved is the largest relative change of these figures, MovedBy which one it is. */
  moved: number
  moved_by?: string
  /**
   * own_trials says that other trials of the run took the processors, which ran at the same time: neither other programs
   * nor the hypervisor used much.
   */
  own_trials?: boolean
}

/** Unconfirmed is a direction that was changed, and whose packets did not obey the change. */
export interface Unconfirmed {
  link: string
  /** from its end B to A */
  back?: boolean
  /** when it was set */
  at_s: number
  /** that crossed */
  packets: number
}

/** Verdict says whether the trial can be believed. */
export interface Verdict {
  /** valid | suspect */
  state: string
  reasons?: string[]
  /** kinds names the kind of each reason, in the same order (evidence/verdict has them). */
  kinds?: string[]
  /** notes are what disturbed the machine and changed nothing. */
  notes?: string[]
}
