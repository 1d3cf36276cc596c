// The form for a new experiment.
import type { Event as DraftEvent, Experiment } from '../go/draft'
import type { Form } from '../go/serve'
import { plural } from '../format/format'
import { h, replace } from '../ui/dom'
import { draftOf } from './api'
import { makerPage, type Maker } from './maker'
import { eventRows } from './newevents'
import type { Page } from './pages'

/** numbersOf parses a list of factors and skips everything else. */
export function numbersOf(text: string): number[] {
  return text.split(/[\s,;]+/).filter(Boolean).map(Number).filter((n) => Number.isFinite(n))
}

/** newPage is the form for a new experiment. */
export const newPage = (): Page => makerPage('New experiment', experiment)

function experiment(f: Form): Maker {
  const d: Experiment = structuredClone(f.draft)
  let changed = () => {}
  const client = h('select', { id: 'new-client', onchange: () => { d.client = client.value; changed() } })
  const rows = eventRows(f.offers, (events: DraftEvent[]) => { d.events = events; changed() })
  const audit = h('input', { id: 'new-audit', type: 'checkbox', onchange: () => { d.audit = audit.checked; changed() } })
  return {
    rows: 26, command: 'skerry run', watch: '#/live', ended: '#/runs',
    draft: () => draftOf(d),
    made: (text) => ({ text, needs: '' }),
    reach: (c) => plural(c.trials, 'trial'),
    places(p) {
      const now = d.client || p.sites[0] || ''
      replace(client, p.sites.map((s) => h('option', { value: s }, s)))
      client.value = now
      rows.places(p)
    },
    answers(_, { field, words, pick, amount, lines }, onChange) {
      changed = onChange
      return [
        field('Name', 'new-name', words('new-name', d.name, (s) => { d.name = s })),
        field('Database', 'new-database', pick('new-database', d.database, f.databases, (s) => { d.database = s })),
        field('Topology (preset or file)', 'new-topology',
          words('new-topology', d.topology, (s) => { d.topology = s; d.client = '' }, 'new-topologies')),
        h('datalist', { id: 'new-topologies' }, f.topologies.map((t) => h('option', { value: t }))),
        field('Client site', 'new-client', client),
        field('Workload', 'new-workload', pick('new-workload', d.workload, f.workloads, (s) => { d.workload = s })),
        field('Records', 'new-records', amount('new-records', d.records, (n) => { d.records = n })),
        field('Threads', 'new-threads', amount('new-threads', d.threads, (n) => { d.threads = n })),
        field('Distance scale', 'new-scales', words('new-scales', d.scales.join(', '), (s) => { d.scales = numbersOf(s) })),
        field('Repetitions', 'new-repetitions', amount('new-repetitions', d.repetitions, (n) => { d.repetitions = n })),
        field('Duration per trial', 'new-time', words('new-time', d.time, (s) => { d.time = s })),
        rows.element,
        field('Assertions (one per line)', 'new-assert', lines('new-assert', d.assert, (l) => { d.assert = l })),
        h('div', { class: 'answer' }, h('label', { for: 'new-audit' }, 'Audit acknowledged writes'), audit),
      ]
    },
  }
}
