// Made by "make docs" from the types of internal/run/choose/sketch.

/** Day is a kind of bad day. */
export interface Day {
  key: string
  title: string
  /** on is what it happens to: a site, or a link. */
  on: string
  /** any says that it may be drawn at random. */
  any: boolean
}

/** Sketch is what was answered. */
export interface Sketch {
  /** name is that of the file. */
  name: string
  /** cloud is a preset or the path of a topology file. */
  cloud: string
  /** clients are the sites that requests come from; none is the cloud's first. */
  clients: string[]
  workload: string
  /** target is how many operations a second are asked for; 0 is as many as there can be. */
  target: number
  records: number
  /** must are lines of must, as "p99 < 400ms" or "read: linearizable". */
  must: string[]
  /** bad_days are lines of bad_days, as "site_lost: Pune". */
  bad_days: string[]
  prefer: string[]
  /** consider are the databases; none is all that are installed. */
  consider: string[]
  /** budget is how long the choice may take, such as "40min". */
  budget: string
}
