// Made by "make docs" from the types of internal/report.

/** Highlight is one of the few most important findings. */
export interface Highlight {
  /** kind is assertion, audit, failed, trust, effect, recovery, latency or errors. */
  kind: string
  text: string
  /** trial is the ID of the trial concerned, 0 for all. */
  trial?: number
  /** bad marks a warning about the validity of the other findings. */
  bad?: boolean
}

/** Tally counts trials by what became of them. */
export interface Tally {
  planned: number
  valid: number
  suspect: number
  failed: number
  interrupted: number
  missing: number
}
