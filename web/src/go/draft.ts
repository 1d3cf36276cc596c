// Made by "make docs" from the types of internal/run/draft.

/** Day is a kind of bad day. */
export interface Day {
  key: string
  title: string
  /** on is the target: a site or a link. */
  on: string
  /** any means that the target may be random. */
  any: boolean
}

/** Event is an offer of package event with its target, amount and times. */
export interface Event {
  /** offer is the ID of one of event.Offers. */
  offer: string
  /** target is a node or a link; "" is one at random, drawn from the experiment's seed. */
  target: string
  /** amount is what the offer asks for; "" is its default. */
  amount: string
  /** at is after how much of the measurement, For how long; "" spreads the events evenly. */
  at: string
  for: string
}

/** Experiment has the answers that make an experiment file. */
export interface Experiment {
  name: string
  /** topology is a preset or the path of a topology file. */
  topology: string
  /** client is the site where the load comes from; "" is the topology's first. */
  client: string
  database: string
  workload: string
  records: number
  threads: number
  /** scales are the factors of all distances, each a trial; none is 1. */
  scales: number[]
  repetitions: number
  /** time is how long each trial measures, such as "30s". */
  time: string
  /** events happen while a trial measures. */
  events: Event[]
  /** audit reads every acknowledged write back. */
  audit: boolean
  assert: string[]
}

/** Needs has the answers that make a needs file. */
export interface Needs {
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

/** Places are the names of a topology that answers can use. */
export interface Places {
  sites: string[]
  /** with data */
  nodes: string[]
  /** at most mostLinks */
  links: string[]
}
