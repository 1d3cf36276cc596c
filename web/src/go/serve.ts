// Made by "make docs" from the types of internal/serve.
import type { Standing } from './choose'
import type { Day, Experiment, Needs, Places } from './draft'
import type { Offer } from './event'
import type { Mistake } from './experiment'
import type { Engine, Machine, Notes, Verdict } from './record'
import type { Warning } from './warnings'

/** Cell is what can be compared: all repetitions of one combination of parameters. */
export interface Cell {
  number: number
  parameters: Record<string, unknown>
  ended_ok: number
}

/** Checked is the validation result of an unsaved file. */
export interface Checked {
  text: string
  /** if valid */
  name: string
  valid: boolean
  wrong: Mistake[]
  notes: string[]
  /** trials is the number of planned trials, EstimateS their longest duration; 0 if unknown. */
  trials: number
  estimate_s: number
  /** candidates are the candidates of a choice. Left are the excluded ones, with reasons. */
  candidates?: string[]
  left?: string[]
  /** places are the sites of a valid file's topology. */
  places?: Places
}

/** Choice is an entry of the list of choices. */
export interface Choice extends Standing {
  /** folder name */
  name: string
  /** page is the file of the current answer, Grid that of an exhaustive choice; "" if missing. */
  page?: string
  grid?: string
  /** problem explains why the choice cannot be read. */
  problem?: string
}

/** Detail is a run with its trials. */
export interface Detail extends Entry {
  command: string[]
  host: Machine
  engine: Engine
  seed: number
  warnings?: string[]
  /** remarks report problems of the run's files. */
  remarks?: string[]
  ended: TrialRow[]
  cells: Cell[]
}

/** Entry is a run in the list. */
export interface Entry {
  /** directory name */
  name: string
  experiment?: string
  description?: string
  /** state is the state of a run. */
  state: State
  started?: string
  finished?: string
  /** trials */
  planned: number
  /** number of ended trials: valid, suspect, failed, interrupted */
  trials: Record<string, number>
  databases?: Record<string, string>
  /** goodput_ops_s is the minimum and maximum over trials. */
  goodput_ops_s?: [number, number]
  /** parameters are the values of each axis. */
  parameters?: Record<string, string[]>
  /** problem explains why the run cannot be read. */
  problem?: string
  /** doubts are warnings about its trials, the most serious first. */
  doubts?: Warning[]
  notes: Notes
}

/** Form is the initial content of the pages that create experiments and needs files. */
export interface Form {
  draft: Experiment
  sketch: Needs
  databases: string[]
  topologies: string[]
  workloads: string[]
  offers: Offer[]
  bad_days: Day[]
  /** starts reports whether this server starts jobs. Folder is the folder of saved files. */
  starts: boolean
  folder: string
}

/** Job is the run or choice that a page started last. */
export interface Job {
  /** "" if there was none */
  file: string
  needs: boolean
  runs: boolean
  /** error is the reason of a failure, Said the end of its output. */
  error?: string
  said?: string
}

/** Saved names a saved file. */
export interface Saved {
  file: string
}

/** Session is the information that a page needs for requests. */
export interface Session {
  version: string
  csrf: string
  /** the folder */
  runs: string
}

/** State is the progress of a run. */
export type State = (typeof everyState)[number]
export const everyState = ['running', 'finished', 'interrupted', 'unreadable'] as const

/** Tail holds high percentiles of a latency, in microseconds. */
export interface Tail {
  count: number
  p95_us: number
  p99_us: number
}

/** Text is an experiment, or the needs of a choice, as edited in a page. */
export interface Text {
  text: string
  /**
   * needs is the name of a needs file. It is empty for an experiment, which has its name in the
   * text.
   */
  needs: string
}

/** TrialRow is an ended trial. */
export interface TrialRow {
  id: number
  /** cell is all repetitions of one combination of parameters. */
  cell: number
  repetition: number
  parameters: Record<string, unknown>
  state: string
  error?: string
  verdict: Verdict
  goodput_ops_s: number
  goodput_ci95_ops_s: number
  duration_s: number
  /** operations are the response times by kind, READ, UPDATE ..., of successful operations. */
  operations: Record<string, Tail>
  events: number
  fired_by_hand?: number
}
