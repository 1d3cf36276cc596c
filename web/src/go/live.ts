// Made by "make docs" from the types of internal/run/live.
import type { Assertion, ErrorSecond, Event, NetworkSecond, NodeSecond, OperationSecond, Outcomes, PoolSecond, Second } from './record'
import type { Warning } from './warnings'

/** Cloud is the trial's lab. */
export interface Cloud {
  name: string
  sites: Site[]
  nodes: Node[]
  links: Link[]
}

/** Kind is a kind of message: the name of the server-sent event. */
export type Kind = (typeof everyKind)[number]
export const everyKind = ['state', 'trial', 'second', 'operations', 'pools', 'errors', 'nodes', 'network', 'links', 'event', 'result', 'doubts', 'tasks', 'end'] as const

/** Link is the current state of a link, and the median round trip measured before the workload. */
export interface Link {
  id: string
  /** node */
  a: string
  b: string
  ab: Way
  ba: Way
  rtt_ms?: number
  /** differs from the start of the measurement */
  changed?: boolean
  /** carrier_down means that its devices are down, like an unplugged cable. */
  carrier_down?: boolean
}

/** Node is a node of the lab. CPU is its quota in cores, 0 for none. */
export interface Node {
  name: string
  site: string
  role: string
  cpu_cores?: number
  memory_bytes?: number
}

/** Refusal is the response to an event that cannot be fired. */
export interface Refusal {
  error: string
  hint?: string
}

/** Result is an ended trial. */
export interface Result {
  id: number
  state: string
  error?: string
  goodput_ops_s: number
  verdict?: string
  /** reasons of the verdict. */
  reasons?: string[]
  assertions?: Assertion[]
}

/** Run identifies the run. */
export interface Run {
  /** of the directory */
  name: string
  experiment: string
  description?: string
  /** number of trials */
  planned: number
  version?: string
}

/** Site is a site; Lat and Lon are degrees, valid if Located. */
export interface Site {
  name: string
  lat: number
  lon: number
  located: boolean
}

/** State is everything that a new follower needs. */
export interface State {
  run: Run
  /** nil before the first and after the last */
  trial?: Trial
  /** tasks is set if an executor, or several lanes, run the trials. */
  tasks?: Tasks
  /** cloud is the trial's; nil until its lab is up. */
  cloud?: Cloud
  /** seconds are the last seconds of the trial, warm-up included, at most keepSeconds. */
  seconds: Second[]
  /**
   * operations, Pools and Errors are rows per second by operation, workload, and operation and error
   * class; the last keepSeconds rows. Pools is empty for a single workload.
   */
  operations?: OperationSecond[]
  pools?: PoolSecond[]
  errors?: ErrorSecond[]
  /** totals counts the operations of the measurement so far. */
  totals: Outcomes
  /** nodes is the resource use by second and node, the last keepNodes rows. */
  nodes: NodeSecond[]
  /** network is the last row of network.parquet. */
  network?: NetworkSecond
  /** events of the trial, each as in its last line of events.jsonl. */
  events: Event[]
  /** results of the ended trials, in the order of their end. */
  results: Result[]
  /** doubts are the warnings about the run's trials, the most serious first. */
  doubts: Warning[]
}

/** TaskAt is a running task. */
export interface TaskAt {
  task: number
  trials: number[]
  where: string
  /** when it was first seen there */
  since: string
}

/** Tasks is the state of the tasks of a run. */
export interface Tasks {
  /** name of the executor */
  on: string
  /**
   * waiting, Running and Done count tasks: not submitted or without a machine, running, and with all
   * results.
   */
  waiting: number
  running: number
  done: number
  /** suspect and Failed count trials. */
  suspect: number
  failed: number
  /** lost counts tasks that ended without results and were resubmitted or given up. */
  lost: number
  /** left_s estimates the remaining seconds, 0 if unknown. */
  left_s?: number
  /** at lists the running tasks, Troubles the last problems; both are bounded. */
  at: TaskAt[]
  troubles: Trouble[]
}

/** Trial is the current trial. */
export interface Trial {
  id: number
  /** ended trials of the plan, plus this one */
  number: number
  repetition: number
  parameters: Record<string, unknown>
  database: string
  started: string
  /** stage describes the current step. */
  stage: string
  /** began is the start of the measurement, nil before. */
  began?: string
  /** limit_s is the longest measurement, 0 if only operations limit it. */
  limit_s?: number
  /** measuring is true while events can be fired. */
  measuring: boolean
}

/** Trouble is a task that ended without its results. */
export interface Trouble {
  task: number
  /** cancelled, preempted, timed out, lost, failed */
  state: string
  where?: string
  why: string
  at: string
  /** it was resubmitted */
  again: boolean
}

/** Way is one direction of a link. Bandwidth is 0 if unlimited. */
export interface Way {
  latency_ms: number
  jitter_ms?: number
  /** share of packets */
  loss?: number
  bps?: number
  down?: boolean
}
