// Made by "make docs" from the types of internal/serve.
import type { Doubt } from './doubt'
import type { Engine, Machine, Notes, Verdict } from './record'

/** Cell is what can be compared: all repetitions of one combination of parameters. */
export interface Cell {
  number: number
  parameters: Record<string, unknown>
  ended_ok: number
}

/** Detail is a run with its trials. */
export interface Detail extends Entry {
  command: string[]
  host: Machine
  engine: Engine
  seed: number
  warnings?: string[]
  /** remarks tell what was not as it should be with the run's files. */
  remarks?: string[]
  ended: TrialRow[]
  cells: Cell[]
}

/** Entry is a run as the list shows it. */
export interface Entry {
  /** of its directory */
  name: string
  experiment?: string
  description?: string
  state: State
  started?: string
  finished?: string
  /** trials */
  planned: number
  /** ended, by how: valid, suspect, failed, interrupted */
  trials: Record<string, number>
  databases?: Record<string, string>
  /** goodput_ops_s is the least and the most of its trials. */
  goodput_ops_s?: [number, number]
  /** parameters are the values of each axis, as text. */
  parameters?: Record<string, string[]>
  /** problem says why the run cannot be read. */
  problem?: string
  /** doubts are what is wrong with its trials, the gravest first. */
  doubts?: Doubt[]
  notes: Notes
}

/** Session is what a page shows with every change: CSRF. */
export interface Session {
  version: string
  csrf: string
  /** the folder */
  runs: string
}

/** State is how far a run is. */
export type State = (typeof everyState)[number]
export const everyState = ['running', 'finished', 'interrupted', 'unreadable'] as const

/** Tail is the slow end of a latency, in microseconds, over so many operations. */
export interface Tail {
  count: number
  p95_us: number
  p99_us: number
}

/** TrialRow is a trial that has ended. */
export interface TrialRow {
  id: number
  cell: number
  repetition: number
  parameters: Record<string, unknown>
  state: string
  error?: string
  verdict: Verdict
  goodput_ops_s: number
  goodput_ci95_ops_s: number
  duration_s: number
  /** operations are the response times of each kind, READ, UPDATE ..., that has ended ok. */
  operations: Record<string, Tail>
  events: number
  fired_by_hand?: number
}
