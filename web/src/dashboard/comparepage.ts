// Comparison of two runs: all metrics with tests.
import { pairs } from '../charts/pairs'
import { h, replace } from '../ui/dom'
import type { Cell as CellRow } from '../go/serve'
import { compare, detail, reportOf, runs } from './api'
import { courses } from './courses'
import { compareAddress, errorMessage, type Page } from './pages'
import { olderFirst } from './runspage'

/** mostCourses is the number of pairs whose time series are loaded and drawn. */
const mostCourses = 6

/** comparePage compares two runs. Runs without a name are selected in the form. */
export function comparePage(a: string, b: string): Page {
  const out = h('div', { 'aria-live': 'polite' })
  const form = h('form', { class: 'card compare' })
  const element = h('div', { class: 'page' }, h('h1', {}, 'Compare'), form, out)
  let closed = false
  let clear = () => {}

  const all = '' // every cell that both runs have
  async function build(): Promise<void> {
    const list = (await runs()).filter((r) => r.state !== 'unreadable')
    if (list.length === 0) {
      replace(out, h('p', { class: 'muted' }, 'No runs to compare.'))
      return
    }
    const pick = (label: string, chosen: string) => {
      const e = h('select', { 'aria-label': `Run ${label}` },
        list.map((r) => h('option', { value: r.name, selected: r.name === chosen }, r.name)))
      if (chosen) e.value = chosen
      return e
    }
    const [runA, runB] = [pick('A', a || list[0]!.name), pick('B', b || list[Math.min(1, list.length - 1)]!.name)]
    const [cellA, cellB] = [h('select', { 'aria-label': 'Cell of A' }), h('select', { 'aria-label': 'Cell of B' })]
    const cells = async (run: HTMLSelectElement, cell: HTMLSelectElement, first: number) => {
      const d = await detail(run.value)
      const name = (c: CellRow) => Object.entries(c.parameters).map(([k, v]) => `${k} ${v}`).join(', ')
      replace(cell, h('option', { value: all }, 'all matching cells'),
        d.cells.map((c) => h('option', { value: c.number, disabled: c.ended_ok === 0 }, `${c.number}: ${name(c)}`)))
      const usable = d.cells.filter((c) => c.ended_ok > 0)
      cell.value = runA.value === runB.value && usable.length > 1 ? String(usable[Math.min(first, usable.length - 1)]!.number) : all
    }
    const refresh = async () => {
      const [x, y] = [runA, runB].map((e) => list.find((r) => r.name === e.value))
      if (x && y) [runA.value, runB.value] = olderFirst(x, y).map((r) => r.name) as [string, string]
      history.replaceState(null, '', compareAddress(runA.value, runB.value))
      await Promise.all([cells(runA, cellA, 0), cells(runB, cellB, 1)])
      await show()
    }
    const show = async () => {
      replace(out, h('p', { class: 'muted' }, 'Comparing.'))
      try {
        const c = await compare(runA.value, runB.value, cellA.value, cellB.value)
        if (closed) return
        clear()
        const shown = pairs(c, (run) => h('a', { href: reportOf(run), target: '_blank', rel: 'noopener' }, run),
          (p, i) => (i < mostCourses ? courses(p) : undefined))
        clear = shown.close
        replace(out, shown.elements)
      } catch (e) {
        if (!closed) replace(out, errorMessage(e))
      }
    }
    for (const e of [runA, runB]) e.addEventListener('change', () => void refresh())
    for (const e of [cellA, cellB]) e.addEventListener('change', () => void show())
    form.addEventListener('submit', (e) => e.preventDefault())
    replace(form, [['A', runA, cellA], ['B', runB, cellB]].map(([name, run, cell]) => h('div', { class: 'controls' },
      h('b', { class: `side ${String(name).toLowerCase()}` }, String(name)), run as Node, cell as Node)),
      h('p', { class: 'small muted' }, 'The older run is A, the newer B.'))
    await refresh()
  }

  build().catch((e: unknown) => { if (!closed) replace(out, errorMessage(e)) })
  return { title: 'Compare', element, close() { closed = true; clear() } }
}
