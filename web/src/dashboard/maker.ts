// A file that is made by form: the answers on one side, on the other the file that they make, which may
// be written in too. The server checks each as it is typed.
import type { Checked, Form } from '../go/serve'
import { download, h, replace } from '../ui/dom'
import { form, interrupt, job, save, startRun, validateText, type Made } from './api'
import { took, trouble, type Page } from './pages'

const typing = 300
const lookEvery = 1500

/** offsetOf is where line and column, from 1, stand in a text. */
export function offsetOf(text: string, line: number, column: number): number {
  const before = text.split('\n').slice(0, Math.max(0, line - 1))
  return Math.min(text.length, before.reduce((n, l) => n + l.length + 1, 0) + Math.max(0, column - 1))
}

/** Maker is what differs between the files that can be made. */
export interface Maker {
  /** answers are the fields; changed is to be called when one was. */
  answers(f: Form, fields: Fields, changed: () => void): HTMLElement[]
  /** draft makes the file of the answers. */
  draft(): Promise<Checked>
  /** made is a text as the server is to take it. */
  made(text: string): Made
  /** places hears what the topology of a valid file has. */
  places(p: NonNullable<Checked['places']>): void
  /** reach is what a valid file would be, in a few words. */
  reach(c: Checked): string
  /** more is what else there is to say of a valid file. */
  more?(c: Checked): HTMLElement[]
  rows: number
  /** taker is the command that takes the file, watch where it is followed, ended what is there then. */
  taker: string
  watch: string
  ended: string
}

/** Fields make the inputs of a form; each has an id of its own. */
export interface Fields {
  field(label: string, id: string, input: HTMLElement): HTMLElement
  words(id: string, value: string, put: (s: string) => void, list?: string): HTMLInputElement
  pick(id: string, value: string, options: string[], put: (s: string) => void): HTMLSelectElement
  amount(id: string, value: number, put: (n: number) => void, min?: number): HTMLInputElement
  lines(id: string, value: string[], put: (l: string[]) => void): HTMLTextAreaElement
}

/** linesOf are the lines of a text, without empty ones. */
export const linesOf = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean)

function fields(changed: () => void): Fields {
  return {
    field: (label, id, input) => h('div', { class: 'answer' }, h('label', { for: id }, label), input),
    words: (id, value, put, list = '') => h('input', { id, type: 'text', value, list: list || null, autocomplete: 'off', oninput: (e: Event) => { put((e.target as HTMLInputElement).value.trim()); changed() } }),
    pick(id, value, options, put) {
      const s = h('select', { id, onchange: () => { put(s.value); changed() } }, options.map((o) => h('option', { value: o }, o)))
      s.value = value
      return s
    },
    amount: (id, value, put, min = 1) => h('input', { id, type: 'number', min, value, oninput: (e: Event) => { put(Number((e.target as HTMLInputElement).value)); changed() } }),
    lines(id, value, put) {
      const t = h('textarea', { id, rows: Math.max(3, value.length + 1), spellcheck: 'false', oninput: () => { put(linesOf(t.value)); changed() } })
      t.value = value.join('\n')
      return t
    },
  }
}

/** makerPage is the page of a kind of file; before stands above the form. */
export function makerPage(title: string, kind: (f: Form) => Maker, before: HTMLElement | null = null): Page {
  const element = h('div', { class: 'page new' }, before, h('h1', {}, title))
  let close = () => {}
  let closed = false
  void form().then((f) => {
    if (closed) return
    const inner = maker(f, kind(f))
    close = inner.close
    element.append(inner.element)
  }, (e: unknown) => element.append(trouble(e)))
  return { title, element, close() { closed = true; close() } }
}

function maker(f: Form, m: Maker): { element: HTMLElement; close(): void } {
  let last: Checked | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let looking: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  let byHand = false
  let closed = false

  const text = h('textarea', { id: 'yaml', class: 'code', spellcheck: 'false', autocomplete: 'off', rows: m.rows, 'aria-describedby': 'new-verdict', oninput: () => { byHand = true; later() } })
  const verdict = h('div', { id: 'new-verdict', 'aria-live': 'polite' })
  const hand = h('p', { class: 'note', hidden: true }, 'The file was edited manually. ', h('button', { type: 'button', onclick: () => { byHand = false; later() } }, 'Discard manual changes'))
  const outcome = h('div', { 'aria-live': 'polite' })
  const button = (label: string, primary: boolean, go: () => Promise<void> | void) => h('button', { type: 'button', class: primary ? 'primary' : '', onclick: () => void go() }, label)
  const start = button('Start', true, async () => attempt(async () => {
    await startRun(m.made(text.value))
    await look()
  }))
  const keep = button('Save', false, () => attempt(async () => {
    const { file } = await save(m.made(text.value))
    replace(outcome, h('p', { class: 'muted' }, 'Saved. Continue with ', h('code', {}, `${m.taker} ${file}`)))
  }))
  const get = button('Download', false, () => download(`${last?.name || 'file'}.yaml`, 'application/yaml', text.value))

  async function attempt(go: () => Promise<void>): Promise<void> {
    try {
      await go()
    } catch (e) {
      if (!closed) replace(outcome, trouble(e))
    }
  }

  /** later checks once nobody has typed for a while. Until then the text is not of these answers: it cannot be saved. */
  function later(): void {
    last = undefined
    enable()
    clearTimeout(timer)
    timer = setTimeout(() => void check(), typing)
  }

  async function check(): Promise<void> {
    const turn = ++asked
    const own = byHand
    try {
      const c = await (own ? validateText(m.made(text.value)) : m.draft())
      if (turn !== asked || closed) return
      last = c
      if (!own && c.text) text.value = c.text
      if (!own && c.places) m.places(c.places)
      tell(c)
    } catch (e) {
      if (turn === asked && !closed) replace(verdict, trouble(e))
    }
    enable()
  }

  function tell(c: Checked): void {
    hand.hidden = !byHand
    replace(verdict, c.valid ? h('p', { class: 'note fine' }, `Valid: ${m.reach(c)}${c.estimate_s ? `, at most about ${took(c.estimate_s)}` : ''}.`)
      : h('ul', { class: 'note bad wrong' }, c.wrong.map((m) => h('li', {}, m.line ? h('button', { type: 'button', class: 'line', onclick: () => point(m.line!, m.column ?? 1) }, `line ${m.line}`) : null, ` ${m.message}`, m.hint ? `; ${m.hint}` : ''))),
    c.notes.map((n) => h('p', { class: 'note' }, n)), (c.valid && m.more?.(c)) || [])
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
      replace(outcome, h('p', { class: 'note' }, `${j.file} is running. `, h('a', { href: m.watch }, 'Watch it'), ' ', h('button', { type: 'button', onclick: () => void attempt(async () => { await interrupt() }) }, 'Stop it')))
      looking = setTimeout(() => void attempt(look), lookEvery)
    } else {
      replace(outcome, j.error ? [h('p', { class: 'note bad', role: 'alert' }, `${j.file}: ${j.error}`), h('pre', { class: 'said', tabindex: 0 }, j.said ?? '')] : h('p', { class: 'note fine' }, `${j.file} has finished. `, h('a', { href: m.ended }, 'Its results')))
    }
  }

  const changed = (): void => { byHand = false; later() }
  const answers = h('form', { class: 'card answers', 'aria-label': 'Answers', onsubmit: (e: Event) => e.preventDefault() }, m.answers(f, fields(changed), changed))
  const element = h('div', { class: 'columns even' }, answers,
    h('section', { class: 'card file', 'aria-label': 'The file' }, h('label', { for: 'yaml' }, 'The file that ', h('code', {}, m.taker), ' takes'), text, hand, verdict,
      h('div', { class: 'controls' }, start, keep, get), f.starts ? null : h('p', { class: 'muted small' }, 'skerry serve starts runs; this page is of a run.'),
      h('p', { class: 'muted small' }, `${f.starts ? 'Start and Save write' : 'Save writes'} the file into ${f.folder}.`), outcome))
  enable()
  void check()
  void attempt(look)
  return { element, close() { closed = true; clearTimeout(timer); clearTimeout(looking) } }
}
