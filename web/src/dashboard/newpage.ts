// An experiment by form: the answers on one side, on the other the file that they make, which may
// be written in too. The server checks each as it is typed, as skerry validate does.
import type { Draft, Event as DraftEvent } from '../go/draft'
import type { Checked, Form } from '../go/serve'
import { download, h, replace } from '../ui/dom'
import { draftOf, form, interrupt, job, save, startRun, validateText } from './api'
import { eventRows } from './newevents'
import { took, trouble, type Page } from './pages'

const typing = 300
const lookEvery = 1500

/** numbersOf reads the factors that a person wrote; what is no number is left out. */
export function numbersOf(text: string): number[] {
  return text.split(/[\s,;]+/).filter(Boolean).map(Number).filter((n) => Number.isFinite(n))
}

/** linesOf are the lines of a text, without empty ones. */
export const linesOf = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean)

/** offsetOf is where line and column, from 1, stand in a text. */
export function offsetOf(text: string, line: number, column: number): number {
  const before = text.split('\n').slice(0, Math.max(0, line - 1))
  return Math.min(text.length, before.reduce((n, l) => n + l.length + 1, 0) + Math.max(0, column - 1))
}

/** newPage makes an experiment. */
export function newPage(): Page {
  const element = h('div', { class: 'page new' }, h('h1', {}, 'New experiment'))
  let close = () => {}
  let closed = false
  void form().then((f) => {
    if (closed) return
    const inner = maker(f)
    close = inner.close
    element.append(inner.element)
  }, (e: unknown) => element.append(trouble(e)))
  return { title: 'New experiment', element, close() { closed = true; close() } }
}

function maker(f: Form): { element: HTMLElement; close(): void } {
  const d: Draft = structuredClone(f.draft)
  let last: Checked | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let looking: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  let byHand = false
  let closed = false

  const text = h('textarea', { id: 'yaml', class: 'code', spellcheck: 'false', autocomplete: 'off', rows: 26, 'aria-describedby': 'new-verdict', oninput: () => { byHand = true; later(); enable() } })
  const verdict = h('div', { id: 'new-verdict', 'aria-live': 'polite' })
  const hand = h('p', { class: 'note', hidden: true }, 'The file was changed by hand. ', h('button', { type: 'button', onclick: () => { byHand = false; later() } }, 'Make it of the form again'))
  const outcome = h('div', { 'aria-live': 'polite' })
  const button = (label: string, primary: boolean, go: () => Promise<void> | void) => h('button', { type: 'button', class: primary ? 'primary' : '', onclick: () => void go() }, label)
  const start = button('Start', true, async () => attempt(async () => {
    await startRun(text.value)
    await look()
  }))
  const keep = button('Save', false, () => attempt(async () => {
    const { file } = await save(text.value)
    replace(outcome, h('p', { class: 'muted' }, 'Saved. Run it with ', h('code', {}, `skerry run ${file}`)))
  }))
  const get = button('Download', false, () => download(`${last?.name || d.name || 'experiment'}.yaml`, 'application/yaml', text.value))

  async function attempt(go: () => Promise<void>): Promise<void> {
    try {
      await go()
    } catch (e) {
      if (!closed) replace(outcome, trouble(e))
    }
  }

  function later(): void {
    clearTimeout(timer)
    timer = setTimeout(() => void check(), typing)
  }

  async function check(): Promise<void> {
    const turn = ++asked
    const own = byHand
    try {
      const c = await (own ? validateText(text.value) : draftOf(d))
      if (turn !== asked || closed) return
      last = c
      if (!own && c.text) text.value = c.text
      if (!own && c.places) places(c)
      tell(c)
    } catch (e) {
      if (turn === asked && !closed) replace(verdict, trouble(e))
    }
    enable()
  }

  function tell(c: Checked): void {
    hand.hidden = !byHand
    const trials = `${c.trials} ${c.trials === 1 ? 'trial' : 'trials'}`
    replace(verdict, c.valid ? h('p', { class: 'note fine' }, `Valid: ${trials}${c.estimate_s ? `, at most about ${took(c.estimate_s)}` : ''}.`)
      : h('ul', { class: 'note bad wrong' }, c.wrong.map((m) => h('li', {}, m.line ? h('button', { type: 'button', class: 'line', onclick: () => point(m.line!, m.column ?? 1) }, `line ${m.line}`) : null, ` ${m.message}`, m.hint ? `; ${m.hint}` : ''))),
    c.notes.map((n) => h('p', { class: 'note' }, n)))
  }

  function point(line: number, column: number): void {
    const at = offsetOf(text.value, line, column)
    text.focus()
    text.setSelectionRange(at, offsetOf(text.value, line + 1, 1) - 1)
  }

  function enable(): void {
    const ready = last?.valid === true
    keep.disabled = get.disabled = start.disabled = !ready
    start.hidden = !f.starts
  }

  /** look follows the run that was started here, to its page once it is there. */
  async function look(): Promise<void> {
    clearTimeout(looking)
    const j = await job()
    if (closed || !j.file) return
    if (j.runs) {
      replace(outcome, h('p', { class: 'note' }, `${j.file} runs. `, h('a', { href: '#/live' }, 'Watch it'), ' ', h('button', { type: 'button', onclick: () => void attempt(async () => { await interrupt() }) }, 'Stop it')))
      looking = setTimeout(() => void attempt(look), lookEvery)
    } else {
      replace(outcome, j.error ? [h('p', { class: 'note bad', role: 'alert' }, `${j.file}: ${j.error}`), h('pre', { class: 'said', tabindex: 0 }, j.said ?? '')] : h('p', { class: 'note fine' }, `${j.file} has ended. `, h('a', { href: '#/runs' }, 'Its results')))
    }
  }

  const changed = (): void => { byHand = false; later() }
  const field = (label: string, id: string, input: HTMLElement) => h('div', { class: 'answer' }, h('label', { for: id }, label), input)
  const words = (id: string, value: string, put: (s: string) => void, list = '') => h('input', { id, type: 'text', value, list: list || null, autocomplete: 'off', oninput: (e: Event) => { put((e.target as HTMLInputElement).value.trim()); changed() } })
  const pick = (id: string, value: string, options: string[], put: (s: string) => void) => {
    const s = h('select', { id, onchange: () => { put(s.value); changed() } }, options.map((o) => h('option', { value: o }, o)))
    s.value = value
    return s
  }
  const amount = (id: string, value: number, put: (n: number) => void) => h('input', { id, type: 'number', min: 1, value, oninput: (e: Event) => { put(Number((e.target as HTMLInputElement).value)); changed() } })
  const client = h('select', { id: 'new-client', onchange: () => { d.client = client.value; changed() } })
  const rows = eventRows(f.offers, (events: DraftEvent[]) => { d.events = events; changed() })
  const asserts = h('textarea', { id: 'new-assert', rows: 3, spellcheck: 'false', oninput: () => { d.assert = linesOf(asserts.value); changed() } })
  asserts.value = d.assert.join('\n')
  const audit = h('input', { id: 'new-audit', type: 'checkbox', onchange: () => { d.audit = audit.checked; changed() } })

  function places(c: Checked): void {
    const now = d.client || c.places!.sites[0] || ''
    replace(client, c.places!.sites.map((s) => h('option', { value: s }, s)))
    client.value = now
    rows.places(c.places!)
  }

  const answers = h('form', { class: 'card answers', 'aria-label': 'Answers', onsubmit: (e: Event) => e.preventDefault() },
    field('Name', 'new-name', words('new-name', d.name, (s) => { d.name = s })),
    field('Database', 'new-database', pick('new-database', d.database, f.databases, (s) => { d.database = s })),
    field('Topology: a preset or a file', 'new-topology', words('new-topology', d.topology, (s) => { d.topology = s; d.client = '' }, 'new-topologies')),
    h('datalist', { id: 'new-topologies' }, f.topologies.map((t) => h('option', { value: t }))),
    field('The load comes from', 'new-client', client),
    field('Workload', 'new-workload', pick('new-workload', d.workload, f.workloads, (s) => { d.workload = s })),
    field('Records', 'new-records', amount('new-records', d.records, (n) => { d.records = n })),
    field('Operations at once', 'new-threads', amount('new-threads', d.threads, (n) => { d.threads = n })),
    field('Times every distance', 'new-scales', words('new-scales', d.scales.join(', '), (s) => { d.scales = numbersOf(s) })),
    field('Repetitions', 'new-repetitions', amount('new-repetitions', d.repetitions, (n) => { d.repetitions = n })),
    field('Each trial measures', 'new-time', words('new-time', d.time, (s) => { d.time = s })),
    rows.element,
    field('Assertions, a line each', 'new-assert', asserts),
    h('div', { class: 'answer' }, h('label', { for: 'new-audit' }, 'Read every acknowledged write back'), audit))
  const element = h('div', { class: 'columns even' }, answers,
    h('section', { class: 'card file', 'aria-label': 'The file' }, h('label', { for: 'yaml' }, 'The file that ', h('code', {}, 'skerry run'), ' takes'), text, hand, verdict,
      h('div', { class: 'controls' }, start, keep, get), f.starts ? null : h('p', { class: 'muted small' }, 'skerry serve starts runs; this page is of a run.'),
      h('p', { class: 'muted small' }, `${f.starts ? 'Start and Save write' : 'Save writes'} the file into ${f.folder}.`), outcome))
  enable()
  void check()
  void attempt(look)
  return { element, close() { closed = true; clearTimeout(timer); clearTimeout(looking) } }
}
