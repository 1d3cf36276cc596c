// Made by "make docs" from the kinds in internal/event.
import type { Offer } from './event'

export const offers: Offer[] = [
  {
    "id": "cut",
    "title": "Cut links",
    "kind": "link_down",
    "on": "links",
    "targets": "ids"
  },
  {
    "id": "slow",
    "title": "Multiply latency",
    "kind": "latency",
    "on": "links",
    "targets": "ids",
    "amount": {
      "key": "scale",
      "label": "times",
      "value": "3",
      "number": true
    }
  },
  {
    "id": "add",
    "title": "Add latency",
    "kind": "latency",
    "on": "links",
    "targets": "ids",
    "amount": {
      "key": "add",
      "label": "one way",
      "value": "50ms"
    }
  },
  {
    "id": "lose",
    "title": "Lose packets",
    "kind": "loss",
    "on": "links",
    "targets": "ids",
    "amount": {
      "key": "add",
      "label": "share",
      "value": "5%"
    }
  },
  {
    "id": "kill",
    "title": "Kill the database",
    "kind": "kill",
    "on": "nodes",
    "targets": "nodes"
  },
  {
    "id": "pause",
    "title": "Pause all processes",
    "kind": "pause",
    "on": "nodes",
    "targets": "nodes"
  },
  {
    "id": "cpu",
    "title": "Use up CPU",
    "kind": "cpu",
    "on": "nodes",
    "targets": "nodes",
    "amount": {
      "key": "cores",
      "label": "cores",
      "value": "1",
      "number": true
    }
  },
  {
    "id": "isolate",
    "title": "Cut nodes off",
    "kind": "link_down",
    "on": "nodes",
    "targets": "of"
  },
  {
    "id": "slowall",
    "title": "Multiply latency of nodes",
    "kind": "latency",
    "on": "nodes",
    "targets": "of",
    "amount": {
      "key": "scale",
      "label": "times",
      "value": "3",
      "number": true
    }
  }
]
