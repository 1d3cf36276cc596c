// Made by "make docs" from the types of internal/experiment/draft.

/** Draft is what was answered. */
export interface Draft {
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

/** Event is an offer of package event, with where, how much and when. */
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

/** Places are what answers can name of a topology. */
export interface Places {
  sites: string[]
  /** that carry data */
  nodes: string[]
  /** at most mostLinks */
  links: string[]
}
