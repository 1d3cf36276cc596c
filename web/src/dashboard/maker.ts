// A form that creates a file: answers on one side, the resulting file on the other. The file can be edited as well.
// The server checks it during typing.
import type { Checked, Form } from '../go/serve'
import { download, h, replace } from '../ui/dom'
import { form, interrupt, job, save, startRun, validateText, type Made } from './api'
import { took, errorMessage, type Page } from './pages'

const typing = 300
const pollInterval = 1500

/** offsetOf converts a line and column, both from 1, to an offset in a text. */
export function offsetOf(text: string, line: number, column: number): number {
  const before = text.split('\n').slice(0, Math.max(0, line - 1))
  return Math.min(text.length, before.reduce((n, l) => n + l.length + 1, 0) + Math.max(0, column - 1))
}

/** Maker defines the form of one kind of file. */
export interface Maker {
  /** answers returns the fields, which call changed after an edit. */
  answers(f: Form, fields: Fields, changed: () => void): HTMLElement[]
  /** draft creates the file from the answers. */
  draft(): Promise<Checked>
  /** made wraps a text for a request. */
  made(text: string): Made
  /** places is called with the sites, nodes and links of a valid file. */
  places(p: NonNullable<Checked['places']>): void
  /** reach summarises a valid file. */
  reach(c: Checked): string
  /** more returns details of a valid file. */
  more?(c: Checked): HTMLElement[]
  rows: number
  /** command reads the file. watch and ended are the pages of a running and a finished job. */
  command: string
  watch: string
  ended: string
}

/** Fields creates the inputs of a form, each with its own id. */
export interface Fields {
  field(label: string, id: string, input: HTMLElement): HTMLElement
  words(id: string, value: string, put: (s: string) => void, list?: string): HTMLInputElement
  pick(id: string, value: string, options: string[], put: (s: string) => void): HTMLSelectElement
  amount(id: string, value: number, put: (n: number) => void, min?: number): HTMLInputElement
  lines(id: string, value: string[], put: (l: string[]) => void): HTMLTextAreaElement
}

/** linesOf returns the non-empty lines of a text. */
export const linesOf = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean)

function fields(changed: () => void): Fields {
  return {
    field: (label, id, input) => h('div', { class: 'answer' }, h('label', { for: id }, label), input),
    words: (id, value, put, list = '') =>
      h('input', { id, type: 'text', value, list: list || null, autocomplete: 'off',
      oninput: (e: Event) => { put((e.target as HTMLInputElement).value.trim()); changed() } }),
    pick(id, value, options, put) {
      const s = h('select', { id, onchange: () => { put(s.value); changed() } }, options.map((o) => h('option', { value: o }, o)))
      s.value = value
      return s
    },
    amount: (id, value, put, min = 1) =>
      h('input', { id, type: 'number', min, value,
      oninput: (e: Event) => { put(Number((e.target as HTMLInputElement).value)); changed() } }),
    lines(id, value, put) {
      const t = h('textarea', { id, rows: Math.max(3, value.length + 1), spellcheck: 'false',
        oninput: () => { put(linesOf(t.value)); changed() } })
      t.value = value.join('\n')
      return t
    },
  }
}

/** makerPage is the page of one kind of file; before is shown above the form. */
export function makerPage(title: string, kind: (f: Form) => Maker, before: HTMLElement | null = null): Page {
  const element = h('div', { class: 'page new' }, before, h('h1', {}, title))
  let close = () => {}
  let closed = false
  void form().then((f) => {
    if (closed) return
    const inner = maker(f, kind(f))
    close = inner.close
    element.append(inner.element)
  }, (e: unknown) => element.append(errorMessage(e)))
  return { title, element, close() { closed = true; close() } }
}

function maker(f: Form, m: Maker): { element: HTMLElement; close(): void } {
  let last: Checked | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let jobTimer: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  let byHand = false
  let closed = false

  const text = h('textarea',
    { id: 'yaml', class: 'code', spellcheck: 'false', autocomplete: 'off', rows: m.rows, 'aria-describedby': 'new-verdict',
    oninput: () => { byHand = true; checkLater() } })
  const verdict = h('div', { id: 'new-verdict', 'aria-live': 'polite' })
  const hand = h('p', { class: 'note', hidden: true }, 'The file was edited manually. ',
    h('button', { type: 'button', onclick: () => { byHand = false; checkLater() } }, 'Discard manual changes'))
  const outcome = h('div', { 'aria-live': 'polite' })
  const button = (label: string, primary: boolean, go: () => Promise<void> | void) =>
    h('button', { type: 'button', class: primary ? 'primary' : '', onclick: () => void go() }, label)
  const start = button('Start', true, async () => attempt(async () => {
    await startRun(m.made(text.value))
    await followJob()
  }))
  const saveButton = button('Save', false, () => attempt(async () => {
    const { file } = await save(m.made(text.value))
    replace(outcome, h('p', { class: 'muted' }, 'Saved. Continue with ', h('code', {}, `${m.command} ${file}`)))
  }))
  const downloadButton = button('Download', false, () => download(`${last?.name || 'file'}.yaml`, 'application/yaml', text.value))

  async function attempt(go: () => Promise<void>): Promise<void> {
    try {
      await go()
    } catch (e) {
      if (!closed) replace(outcome, errorMessage(e))
    }
  }

  /** checkLater checks the file after a pause in typing. Until then it cannot be saved. */
  function checkLater(): void {
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
      showVerdict(c)
    } catch (e) {
      if (turn === asked && !closed) replace(verdict, errorMessage(e))
    }
    enable()
  }

  function showVerdict(c: Checked): void {
    hand.hidden = !byHand
    replace(verdict, c.valid
      ? h('p', { class: 'note fine' }, `Valid: ${m.reach(c)}${c.estimate_s ? `, at most about ${took(c.estimate_s)}` : ''}.`)
      : h('ul', { class: 'note bad wrong' },
        c.wrong.map((m) => h('li', {},
        m.line ? h('button', { type: 'button', class: 'line', onclick: () => point(m.line!, m.column ?? 1) }, `line ${m.line}`) : null,
        ` ${m.message}`, m.hint ? `; ${m.hint}` : ''))),
    c.notes.map((n) => h('p', { class: 'note' }, n)), (c.valid && m.more?.(c)) || [])
  }

  function point(line: number, column: number): void {
    const at = offsetOf(text.value, line, column)
    text.focus()
    text.setSelectionRange(at, offsetOf(text.value, line + 1, 1) - 1)
  }

  function enable(): void {
    const ready = last?.valid === true
    saveButton.disabled = downloadButton.disabled = start.disabled = !ready
    start.hidden = !f.starts
  }

  /** followJob shows the state of the job that this page started. */
  async function followJob(): Promise<void> {
    clearTimeout(jobTimer)
    const j = await job()
    if (closed || !j.file) return
    if (j.runs) {
      replace(outcome, h('p', { class: 'note' }, `${j.file} is running. `, h('a', { href: m.watch }, 'Watch'), ' ',
        h('button', { type: 'button', onclick: () => void attempt(async () => { await interrupt() }) }, 'Stop')))
      jobTimer = setTimeout(() => void attempt(followJob), pollInterval)
    } else {
      replace(outcome, j.error ? [h('p', { class: 'note bad', role: 'alert' }, `${j.file}: ${j.error}`),
        h('pre', { class: 'said', tabindex: 0 }, j.said ?? '')] : h('p', { class: 'note fine' }, `${j.file} has finished. `,
        h('a', { href: m.ended }, 'Show results')))
    }
  }

  const changed = (): void => { byHand = false; checkLater() }
  const answers = h('form', { class: 'card answers', 'aria-label': 'Answers', onsubmit: (e: Event) => e.preventDefault() },
    m.answers(f, fields(changed), changed))
  const element = h('div', { class: 'columns even' }, answers,
    h('section', { class: 'card file', 'aria-label': 'File' }, h('label', { for: 'yaml' }, 'File for ', h('code', {}, m.command)), text,
      hand, verdict,
      h('div', { class: 'controls' }, start, saveButton, downloadButton),
      f.starts ? null : h('p', { class: 'muted small' }, 'Only skerry serve can start runs.'),
      h('p', { class: 'muted small' }, `${f.starts ? 'Start and Save write' : 'Save writes'} the file to ${f.folder}.`), outcome))
  enable()
  void check()
  void attempt(followJob)
  return { element, close() { closed = true; clearTimeout(timer); clearTimeout(jobTimer) } }
}
