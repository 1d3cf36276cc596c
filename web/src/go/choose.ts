// Made by "make docs" from the types of internal/run/choose.

/** Standing is how a choice stands, for who follows it. */
export interface Standing {
  schema: string
  /** needs is where the needs file was: what it names is relative to that. */
  needs: string
  started: string
  finished?: string
  spent_s: number
  budget_s: number
  trials: number
  /** the answer so far */
  sentence?: string
  /** Said are the lines that were told last. */
  said?: string[]
  /** running says whether a command is choosing in the folder. */
  running: boolean
}
