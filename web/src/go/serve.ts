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

/** Checked is what there is to say of a file that nobody has saved yet. */
export interface Checked {
  text: string
  /** of a valid one */
  name: string
  valid: boolean
  wrong: Mistake[]
  notes: string[]
  /** trials are as many as would be run, in at most about EstimateS seconds; 0 if that is not known. */
  trials: number
  estimate_s: number
  /** candidates are those that a choice would be between, Left those that it leaves out, with the reason. */
  candidates?: string[]
  left?: string[]
  /** places are those of its topology, where it is valid. */
  places?: Places
}

/** Choice is one as the list shows it. */
export interface Choice extends Standing {
  /** of its folder */
  name: string
  /** page is the answer so far, "" where there is none yet; Grid that of an exhaustive choice. */
  page?: string
  grid?: string
  /** problem says why the choice cannot be read. */
  problem?: string
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
  doubts?: Warning[]
  notes: Notes
}

/** Form is what the pages that make experiments and needs begin with. */
export interface Form {
  draft: Experiment
  sketch: Needs
  databases: string[]
  topologies: string[]
  workloads: string[]
  offers: Offer[]
  bad_days: Day[]
  /** starts says whether this server starts runs; Folder is where it saves their files. */
  starts: boolean
  folder: string
}

/** Job is the run, or the choice, that was started last from a page. */
export interface Job {
  /** "" where none was */
  file: string
  needs: boolean
  runs: boolean
  /** error says how it failed, Said is the end of what it wrote then. */
  error?: string
  said?: string
}

/** Saved says where an experiment lies. */
export interface Saved {
  file: string
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

/** Text is a file as a page has it: an experiment, or the needs of a choice. */
export interface Text {
  text: string
  /** needs is the name of a needs file; "" is an experiment, which has its name in the text. */
  needs: string
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
