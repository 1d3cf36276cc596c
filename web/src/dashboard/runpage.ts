// One run: its notes and tags, its trials, and where to look closer.
import { clock, duration, figure } from '../format/format'
import { h, replace } from '../ui/dom'
import { detail, reportOf, writeNotes, type Detail, type Notes, type TrialRow } from './api'
import { ago, badge, compareAddress, liveAddress, parameters, trouble, type Page } from './pages'
import { state, tally } from './runspage'

/** runPage shows a run. */
export function runPage(name: string): Page {
  const element = h('div', { class: 'page' }, h('p', { class: 'muted' }, 'Reading the run.'))
  let closed = false
  detail(name).then((d) => { if (!closed) replace(element, content(d)) }, (e: unknown) => { if (!closed) replace(element, h('h1', {}, name), trouble(e), h('p', {}, h('a', { href: '#/runs' }, 'All runs'))) })
  return { title: name, element, close() { closed = true } }
}

function content(d: Detail): HTMLElement[] {
  const fact = (label: string, value: string | HTMLElement) => h('div', {}, h('dt', {}, label), h('dd', {}, value))
  return [
    h('div', { class: 'runhead' },
      h('div', {}, h('h1', {}, d.experiment || d.name, ' ', state(d)), d.description ? h('p', { class: 'muted' }, d.description) : null, h('p', { class: 'directory muted' }, d.name)),
      h('div', { class: 'actions' }, d.state === 'running' ? h('a', { class: 'button primary', href: liveAddress(d.name) }, 'Live') : null,
        h('a', { class: 'button primary', href: reportOf(d.name), target: '_blank', rel: 'noopener' }, 'Report'), h('a', { class: 'button', href: compareAddress(d.name, d.cells.length > 1 ? d.name : '') }, 'Compare'))),
    ...[...(d.remarks ?? []), ...(d.warnings ?? [])].map((w) => h('p', { class: 'note' }, w)),
    h('div', { class: 'columns even' },
      h('section', { class: 'card', 'aria-label': 'Facts' }, h('dl', { class: 'facts' },
        fact('Started', ago(d.started)), fact('Trials', tally(d)), fact('Databases', Object.entries(d.databases ?? {}).map(([k, v]) => `${k} ${v}`).join(', ') || '–'),
        fact('Links', d.engine.name || '–'), fact('Machine', `${d.host.name}, ${d.host.cores} cores, ${d.host.cpu}`), fact('Seed', String(d.seed)),
        fact('Command', h('code', {}, (d.command ?? []).join(' ') || '–')))),
      notes(d.name, d.notes)),
    h('section', { class: 'card', 'aria-label': 'Trials' }, h('h2', {}, 'Trials'), d.ended.length ? trials(d.ended) : h('p', { class: 'muted' }, 'None has ended yet.')),
  ]
}

/** notes is the form in which a run's notes are changed. */
function notes(run: string, first: Notes): HTMLElement {
  let now = first
  const note = h('textarea', { id: 'note', rows: 5, placeholder: 'What is worth knowing about this run' })
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
      replace(outcome, trouble(e))
    }
    changed()
  }
  return h('section', { class: 'card', 'aria-label': 'Notes' }, h('form', { class: 'notes', onsubmit: (e: Event) => void send(e) },
    h('label', { for: 'note' }, 'Notes'), note, h('label', { for: 'tags' }, 'Tags, parted by commas'), tags, h('div', { class: 'controls' }, save, outcome)))
}

function trials(list: TrialRow[]): HTMLElement {
  const row = (t: TrialRow) => h('tr', { class: t.state === 'ok' ? '' : 'bad' },
    h('td', { class: 'num' }, t.id), h('td', {}, parameters(t.parameters)), h('td', { class: 'num' }, t.repetition),
    h('td', {}, badge(t.state === 'ok' ? t.verdict.state : t.state, t.state !== 'ok' ? 'bad' : t.verdict.state === 'valid' ? 'good' : 'warn'), t.fired_by_hand ? badge(`${t.fired_by_hand} by hand`) : null,
      t.error || t.verdict.reasons?.length ? h('p', { class: 'reasons' }, t.error ?? (t.verdict.reasons ?? []).join('; ')) : null),
    h('td', { class: 'num' }, t.state === 'ok' ? figure(t.goodput_ops_s) : '–', t.goodput_ci95_ops_s ? h('span', { class: 'muted' }, ` ± ${figure(t.goodput_ci95_ops_s)}`) : null),
    h('td', { class: 'num' }, t.p99_us ? duration(t.p99_us) : '–'), h('td', { class: 'num' }, t.events), h('td', { class: 'num' }, t.duration_s ? clock(t.duration_s) : '–'))
  return h('div', { class: 'wide' }, h('table', {}, h('caption', { class: 'visually-hidden' }, 'Trials that have ended'),
    h('thead', {}, h('tr', {}, ['Trial', 'Parameters', 'Repetition', 'Verdict', 'Goodput, ops/s', 'p99', 'Events', 'Measured'].map((c, i) => h('th', { scope: 'col', class: [0, 2, 4, 5, 6, 7].includes(i) ? 'num' : '' }, c)))),
    h('tbody', {}, list.map(row))))
}
