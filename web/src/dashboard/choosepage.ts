// Choices: a live list, and a form for the needs of a new one.
import type { Choice, Form } from '../go/serve'
import type { Needs } from '../go/draft'
import { plural } from '../format/format'
import { h, replace } from '../ui/dom'
import { answerOf, choices, sketchOf } from './api'
import { makerPage, type Maker } from './maker'
import { ago, took, errorMessage, type Page } from './pages'

const pollInterval = 3000

/** choosePage lists choices and has the form for a new one. */
export function choosePage(): Page {
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false
  let before = ''
  const list = h('div', { 'aria-live': 'polite' })

  async function refresh(): Promise<void> {
    clearTimeout(timer)
    try {
      const found = await choices()
      const text = JSON.stringify(found)
      if (closed) return
      if (text !== before) replace(list, listOf(found))
      before = text
    } catch (e) {
      if (!closed) replace(list, errorMessage(e))
      before = ''
    }
    timer = setTimeout(() => void refresh(), document.visibilityState === 'visible' ? pollInterval : 10 * pollInterval)
  }
  void refresh()
  const inner = makerPage('Which database for my cloud?', needs)
  inner.element.append(list)
  return { title: 'Choose', element: inner.element, close() { closed = true; clearTimeout(timer); inner.close() } }
}

/** standing describes the progress of a choice. */
export function standing(c: Choice): string {
  const spent = `${plural(c.trials, 'trial')}, ${took(c.spent_s)} of ${took(c.budget_s)}`
  if (c.running) return `running: ${spent}`
  return c.finished ? `answered: ${spent}` : `interrupted: ${spent}`
}

function listOf(found: Choice[]): HTMLElement {
  return h('section', { class: 'choices', 'aria-label': 'Choices' }, h('h2', {}, 'Choices'),
    found.length === 0 ? h('p', { class: 'muted' }, 'None yet. Start one above, or with ', h('code', {}, 'skerry choose needs.yaml'),
      ' in a terminal.')
      : found.map((c) => h('article', { class: 'card' },
        h('h3', {}, c.page ? h('a', { href: answerOf(c.name, c.page), target: '_blank', rel: 'noopener' }, c.name) : c.name, ' ',
          h('span', { class: c.running ? 'count running' : 'muted' }, standing(c)), ' ', h('span', { class: 'muted' }, ago(c.started))),
        c.problem ? h('p', { class: 'problem' }, c.problem) : h('p', {}, c.sentence || 'No answer yet.'),
        c.grid ? h('p', {}, h('a', { href: answerOf(c.name, c.grid), target: '_blank', rel: 'noopener' },
          'Results of all candidates on all days')) : null,
        c.running && c.said?.length ? h('pre', { class: 'said', tabindex: 0, 'aria-label': `Last output of ${c.name}` }, c.said.join('\n'))
          : null,
        c.running || c.finished ? null
          : h('p', { class: 'muted' }, 'Continue with ', h('code', {}, `skerry choose --resume choices/${c.name}`)))))
}

const listed = (title: string, items: string[], open: boolean): HTMLElement => h('details', { class: 'listed', open },
  h('summary', {}, `${title} (${items.length})`), h('ul', {}, items.map((i) => h('li', {}, i))))

const apart = (text: string): string[] => text.split(',').map((w) => w.trim()).filter(Boolean)

function needs(f: Form): Maker {
  const k: Needs = structuredClone(f.sketch)
  let sites: string[] = []
  let links: string[] = []
  const kind = h('select', { id: 'day-kind', 'aria-label': 'Kind of bad day', onchange: () => targets() },
    f.bad_days.map((d) => h('option', { value: d.key }, d.title)))
  const whom = h('select', { id: 'day-whom', 'aria-label': 'Target' })
  const clients = h('select', { id: 'need-clients', multiple: true, size: 4 })
  function targets(): void {
    const d = f.bad_days.find((x) => x.key === kind.value)!
    replace(whom, [...(d.any ? ['any'] : []), ...(d.on === 'site' ? sites : links)].map((t) => h('option', { value: t }, t)))
  }
  return {
    rows: 17, command: 'skerry choose', watch: '#/choose', ended: '#/choose',
    draft: () => sketchOf(k),
    made: (text) => ({ text, needs: k.name }),
    reach: (c) => plural(c.candidates?.length ?? 0, 'candidate'),
    more: (c) => [listed('Candidates', c.candidates ?? [], true),
      ...(c.left?.length ? [listed('Excluded, with reasons', c.left, false)] : [])],
    places(p) {
      if (JSON.stringify([p.sites, p.links]) === JSON.stringify([sites, links])) return
      sites = p.sites
      links = p.links
      replace(clients, sites.map((s) => h('option', { value: s }, s)))
      const now = k.clients.length ? k.clients : sites.slice(0, 1)
      for (const o of clients.options) o.selected = now.includes(o.value)
      targets()
    },
    answers(_, { field, words, pick, amount, lines }, changed) {
      clients.onchange = () => { k.clients = [...clients.selectedOptions].map((o) => o.value); changed() }
      const days = lines('need-days', k.bad_days, (l) => { k.bad_days = l })
      const add = h('button', { type: 'button', onclick: () => {
        k.bad_days = [...k.bad_days, `${kind.value}: ${whom.value}`]
        days.value = k.bad_days.join('\n')
        changed()
      } }, 'Add')
      return [
        field('File name', 'need-name', words('need-name', k.name, (s) => { k.name = s })),
        field('Cloud (preset or file)', 'need-cloud',
          words('need-cloud', k.cloud,
          (s) => { k.cloud = s; k.clients = []; k.bad_days = k.bad_days.filter((d) =>
          d.endsWith(': any')); days.value = k.bad_days.join('\n') }, 'need-clouds')),
        h('datalist', { id: 'need-clouds' }, f.topologies.map((t) => h('option', { value: t }))),
        field('Client sites', 'need-clients', clients),
        field('Workload', 'need-workload',
          pick('need-workload', k.workload, f.workloads.filter((w) => /^[a-f]$/.test(w)), (s) => { k.workload = s })),
        field('Target rate (ops/s)', 'need-target', amount('need-target', k.target, (n) => { k.target = n }, 0)),
        field('Records', 'need-records', amount('need-records', k.records, (n) => { k.records = n })),
        field('Requirements (one per line)', 'need-must', lines('need-must', k.must, (l) => { k.must = l })),
        field('Bad days (one per line)', 'need-days', days),
        h('div', { class: 'answer' }, h('span', { class: 'muted small' }, 'New bad day'),
          h('span', { class: 'eventrow' }, kind, whom, add)),
        field('Preferences (the first one ranks)', 'need-prefer',
          words('need-prefer', k.prefer.join(', '), (s) => { k.prefer = apart(s) })),
        field('Databases (empty for all)', 'need-consider',
          words('need-consider', k.consider.join(', '), (s) => { k.consider = apart(s) })),
        field('Time budget', 'need-budget', words('need-budget', k.budget, (s) => { k.budget = s })),
      ]
    },
  }
}
