// Made by "make docs" from the types of internal/report.

/** Highlight is one of the few findings that a reader should see first. */
export interface Highlight {
  /** kind is assertion, audit, failed, trust, effect, recovery, latency or errors. */
  kind: string
  text: string
  /** trial is the one that it is about, 0 for all. */
  trial?: number
  /** bad marks what a reader must know before believing the rest. */
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
