// One run: notes, tags, trials and links to its report.
import { clock, duration, figure } from '../format/format'
import { h, replace } from '../ui/dom'
import { wide } from '../ui/table'
import type { Notes } from '../go/record'
import type { Detail, TrialRow } from '../go/serve'
import { detail, reportOf, writeNotes } from './api'
import { parameters } from '../charts/pairs'
import { ago, badge, compareAddress, liveAddress, took, errorMessage, type Page } from './pages'
import { tally } from './runspage'
import { verdicts, warningList } from './verdict'

/** runPage shows a run. */
export function runPage(name: string): Page {
  const element = h('div', { class: 'page' }, h('p', { class: 'muted' }, 'Loading run.'))
  let closed = false
  detail(name).then((d) => { if (!closed) replace(element, content(d)) },
    (e: unknown) => {
      if (!closed) replace(element, h('h1', {}, name), errorMessage(e), h('p', {}, h('a', { href: '#/runs' }, 'All runs')))
    })
  return { title: name, element, close() { closed = true } }
}

function content(d: Detail): (HTMLElement | null)[] {
  const fact = (label: string, value: string | HTMLElement) => h('div', {}, h('dt', {}, label), h('dd', {}, value))
  return [
    h('div', { class: 'runhead' },
      h('div', {}, h('h1', {}, d.experiment || d.name, ' ', verdicts(d)), d.description ? h('p', { class: 'muted' }, d.description) : null,
        h('p', { class: 'directory muted' }, d.name)),
      h('div', { class: 'actions' }, d.state === 'running' ? h('a', { class: 'button primary', href: liveAddress(d.name) }, 'Live') : null,
        h('a', { class: 'button primary', href: reportOf(d.name), target: '_blank', rel: 'noopener' }, 'Report'),
        h('a', { class: 'button', href: compareAddress(d.name, d.cells.length > 1 ? d.name : '') }, 'Compare'))),
    warningList(d.doubts),
    ...[...(d.remarks ?? []), ...(d.warnings ?? [])].map((w) => h('p', { class: 'note' }, w)),
    h('div', { class: 'columns even' },
      h('section', { class: 'card', 'aria-label': 'Facts' }, h('dl', { class: 'facts' },
        fact('Started', ago(d.started)), fact('Took', took((Date.parse(d.finished ?? '') - Date.parse(d.started ?? '')) / 1000)),
        fact('Trials', tally(d)), fact('Databases', Object.entries(d.databases ?? {}).map(([k, v]) => `${k} ${v}`).join(', ') || '–'),
        fact('Links', d.engine.name || '–'), fact('Machine', `${d.host.name}, ${d.host.cores} cores, ${d.host.cpu}`),
        fact('Seed', String(d.seed)),
        fact('Command', h('code', {}, (d.command ?? []).join(' ') || '–')))),
      notes(d.name, d.notes)),
    h('section', { class: 'card', 'aria-label': 'Trials' }, h('h2', {}, 'Trials'),
      d.ended.length ? trials(d.ended) : h('p', { class: 'muted' }, 'No trial has finished yet.')),
  ]
}

/** notes is the form for the notes and tags of a run. */
function notes(run: string, first: Notes): HTMLElement {
  let now = first
  const note = h('textarea', { id: 'note', rows: 5, placeholder: 'Findings of this run' })
  const tags = h('input', { id: 'tags', type: 'text', placeholder: 'baseline, slow disk', autocomplete: 'off' })
  const save = h('button', { type: 'submit', disabled: true }, 'Save')
  const outcome = h('div', { 'aria-live': 'polite' })
  const fill = () => {
    note.value = now.note ?? ''
    tags.value = (now.tags ?? []).join(', ')
  }
  const changed = () => { save.disabled = note.value === (now.note ?? '') && tags.value === (now.tags ?? []).join(', ') }
  fill()
  note.addEventListener('input', changed)
  tags.addEventListener('input', changed)
  const send = async (e: Event) => {
    e.preventDefault()
    save.disabled = true
    try {
      now = await writeNotes(run, { ...now, note: note.value, tags: tags.value.split(',') })
      fill()
      replace(outcome, h('p', { class: 'muted small' }, 'Saved.'))
    } catch (e) {
      replace(outcome, errorMessage(e))
    }
    changed()
  }
  return h('section', { class: 'card', 'aria-label': 'Notes' }, h('form', { class: 'notes', onsubmit: (e: Event) => void send(e) },
    h('label', { for: 'note' }, 'Notes'), note, h('label', { for: 'tags' }, 'Tags, separated by commas'), tags,
    h('div', { class: 'controls' }, save, outcome)))
}

/** operationsOf returns the operations of trials, the most frequent first. */
export function operationsOf(list: TrialRow[]): string[] {
  const counts = new Map<string, number>()
  for (const t of list) for (const [name, o] of Object.entries(t.operations)) counts.set(name, (counts.get(name) ?? 0) + o.count)
  return [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).map(([name]) => name)
}

/** trials is the table of trials, with a selector for the operation of its latencies. */
function trials(list: TrialRow[]): HTMLElement {
  const kinds = operationsOf(list)
  const holder = h('div')
  const show = (operation: string) => replace(holder, table(list, operation))
  const pick = h('select', { 'aria-label': 'Operation whose latency is shown', onchange: () => show(pick.value) },
    kinds.map((k) => h('option', { value: k }, k)))
  show(kinds[0] ?? '')
  return h('div', {}, kinds.length > 1 ? h('label', { class: 'field' }, 'Latency of', pick) : null, holder)
}

function table(list: TrialRow[], operation: string): HTMLElement {
  const tail = (t: TrialRow, of: 'p95_us' | 'p99_us') =>
    h('td', { class: 'num' }, t.operations[operation] ? duration(t.operations[operation][of]) : '–')
  const row = (t: TrialRow) => h('tr', { class: t.state === 'ok' ? '' : 'bad' },
    h('td', { class: 'num' }, t.id), h('td', {}, parameters(t.parameters)), h('td', { class: 'num' }, t.repetition),
    h('td', {}, badge(t.state === 'ok' ? t.verdict.state : t.state, t.state !== 'ok' ? 'bad' : t.verdict.state === 'valid' ? 'good'
      : 'warn'), t.fired_by_hand ? badge(`${t.fired_by_hand} by hand`) : null,
      t.error || t.verdict.reasons?.length ? h('p', { class: 'reasons' }, t.error ?? (t.verdict.reasons ?? []).join('; ')) : null),
    h('td', { class: 'num' }, t.state === 'ok' ? figure(t.goodput_ops_s) : '–',
      t.goodput_ci95_ops_s && !t.events ? h('span', { class: 'muted' }, ` ± ${figure(t.goodput_ci95_ops_s)}`) : null),
    tail(t, 'p95_us'), tail(t, 'p99_us'), h('td', { class: 'num' }, t.events),
    h('td', { class: 'num' }, t.duration_s ? clock(t.duration_s) : '–'))
  return wide('Finished trials', h('table', {}, h('caption', { class: 'visually-hidden' }, 'Finished trials'),
    h('thead', {}, h('tr', {}, ['Trial', 'Parameters', 'Repetition', 'Verdict', 'Goodput, ops/s', `${operation} p95`.trim(),
      `${operation} p99`.trim(), 'Events',
      'Measured'].map((c, i) => h('th', { scope: 'col', class: [0, 2, 4, 5, 6, 7, 8].includes(i) ? 'num' : '' }, c)))),
    h('tbody', {}, list.map(row))))
}
