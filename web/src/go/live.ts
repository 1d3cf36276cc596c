// Made by "make docs" from the types of internal/run/live.
import type { Assertion, ErrorSecond, Event, NetworkSecond, NodeSecond, OperationSecond, Outcomes, PoolSecond, Second } from './record'
import type { Doubt } from './warnings'

/** Cloud is a lab as it is. */
export interface Cloud {
  name: string
  sites: Site[]
  nodes: Node[]
  links: Link[]
}

/** Kind is a kind of message: the name of the server-sent event. */
export type Kind = (typeof everyKind)[number]
export const everyKind = ['state', 'trial', 'second', 'operations', 'pools', 'errors', 'nodes', 'network', 'links', 'event', 'result', 'doubts', 'tasks', 'end'] as const

/**
 * Link is a link as it is set at present, and the median round trip that it was measured
 * with before the workload began.
 */
export interface Link {
  id: string
  /** node */
  a: string
  b: string
  ab: Way
  ba: Way
  rtt_ms?: number
  /** it is not as it was when the measurement began */
  changed?: boolean
  /** carrier_down says that its devices are down, as if the cable was pulled out. */
  carrier_down?: boolean
}

/** Node is a machine of the lab. CPU is its quota in cores, 0 for none. */
export interface Node {
  name: string
  site: string
  role: string
  cpu_cores?: number
  memory_bytes?: number
}

/** Refusal is the answer to an event that cannot be fired. */
export interface Refusal {
  error: string
  hint?: string
}

/** Result is a trial that has ended. */
export interface Result {
  id: number
  state: string
  error?: string
  goodput_ops_s: number
  verdict?: string
  /** reasons are those of the verdict. */
  reasons?: string[]
  assertions?: Assertion[]
}

/** Run is what is run. */
export interface Run {
  /** the directory's */
  name: string
  experiment: string
  description?: string
  /** trials */
  planned: number
  version?: string
}

/** Site is a place; Lat and Lon are degrees where Located. */
export interface Site {
  name: string
  lat: number
  lon: number
  located: boolean
}

/** State is all that an onlooker who comes late needs to know. */
export interface State {
  run: Run
  /** nil before the first and after the last */
  trial?: Trial
  /** tasks are there where an engine runs the trials. */
  tasks?: Tasks
  /** cloud is the trial's, nil until its lab is up. */
  cloud?: Cloud
  /** seconds are those of the trial so far, warm-up included, the last keepSeconds at most. */
  seconds: Second[]
  /**
   * operations are the seconds of each kind of operation; Pools are those of each workload where several
   * run side by side, and Errors what did not end ok, by second, operation and class; the last
   * keepSeconds rows at most.
   */
  operations?: OperationSecond[]
  pools?: PoolSecond[]
  errors?: ErrorSecond[]
  /** totals are the operations of the measurement so far. */
  totals: Outcomes
  /** nodes are what nodes used, by second and node, the last keepNodes at most. */
  nodes: NodeSecond[]
  /** network is the last second of network.parquet, where an overlay routes. */
  network?: NetworkSecond
  /** events are the trial's, each as its last line of events.jsonl tells it. */
  events: Event[]
  /** results are the trials of this run that have ended, in that order. */
  results: Result[]
  /** doubts are what is wrong with the run's trials so far, the gravest first. */
  doubts: Doubt[]
}

/** TaskAt is a task that runs somewhere. */
export interface TaskAt {
  task: number
  trials: number[]
  where: string
  /** when it was first seen there */
  since: string
}

/** Tasks are how the tasks of a run on an engine stand. */
export interface Tasks {
  /** the engine */
  on: string
  /** Counts of tasks: not handed over yet or waiting for a machine, running, with all their results. */
  waiting: number
  running: number
  done: number
  /** Trials whose result is suspect, and those that measured nothing. */
  suspect: number
  failed: number
  /** lost counts the times that a task ended without its results and was handed over again, or given up. */
  lost: number
  /** left_s is about how long the rest takes, 0 where nobody knows. */
  left_s?: number
  /** at are the tasks that run, maxTasksAt at most; Troubles the last things that went wrong with others. */
  at: TaskAt[]
  troubles: Trouble[]
}

/** Trial is the trial at hand. */
export interface Trial {
  id: number
  /** how many of the plan have ended, and this one */
  number: number
  repetition: number
  parameters: Record<string, unknown>
  database: string
  started: string
  /** stage says in words what it is at. */
  stage: string
  /** began is when the measurement did, nil before. */
  began?: string
  /** limit_s is how long the measurement takes at most, 0 where only operations count. */
  limit_s?: number
  /** measuring tells whether events can be fired. */
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
  /** it was handed over again */
  again: boolean
}

/** Way is one direction of a link. Bandwidth is 0 where it is unlimited. */
export interface Way {
  latency_ms: number
  jitter_ms?: number
  /** share of packets */
  loss?: number
  bps?: number
  down?: boolean
}
