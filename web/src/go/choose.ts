// Made by "make docs" from the types of internal/run/choose.

/** Standing is the progress of a choice. */
export interface Standing {
  schema: string
  /** needs is the path of the needs file; its relative paths start there. */
  needs: string
  started: string
  finished?: string
  spent_s: number
  budget_s: number
  trials: number
  /** the answer so far */
  sentence?: string
  /** said are the last progress lines. */
  said?: string[]
  /** running is true while a command is choosing in the folder. */
  running: boolean
}
