// A chart: figure, caption, drawing, data table, and downloads as SVG and CSV.
import { download, fileName, h, replace } from '../ui/dom'
import { onTheme, theme, type Theme } from '../ui/theme'
import { init, type ECharts, type Option } from './echarts'

/** Table is the data of a chart, for CSV and screen readers. */
export interface Table {
  columns: string[]
  rows: (string | number | null)[][]
}

export interface Spec {
  title: string
  /** unit of the values, shown next to the title. */
  unit?: string
  /** describe is a text alternative to the drawing. */
  describe: string
  option(t: Theme): Option
  table(): Table
  /** height in CSS pixels. */
  height?: number
  /** points is the number of positions of the keyboard cursor; 0 for none. */
  points?: number
  /** ready is called with the drawing when it exists. */
  ready?(c: ECharts): void
  /** moved is called with the new position of the keyboard cursor. */
  moved?(at: number): void
}

/** Chart is a figure whose spec can change. */
export interface Chart {
  element: HTMLElement
  update(spec: Spec): void
  /** draw draws at once, even if the figure is not visible. */
  draw(): void
  /** label updates the caption after the texts of the spec changed. */
  label(): void
  instance(): ECharts | undefined
  dispose(): void
}

/** csv formats a table as RFC 4180. Text that a spreadsheet would read as a formula is quoted. */
export function csv(t: Table): string {
  const cell = (v: string | number | null): string => {
    if (v === null) return ''
    if (typeof v === 'number') return String(v)
    const text = /^[=+\-@\t\r]/.test(v) ? `'${v}` : v
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return [t.columns, ...t.rows].map((r) => r.map(cell).join(',')).join('\r\n') + '\r\n'
}

const shownRows = 500

/** dataTable shows the first rows of a table. */
export function dataTable(t: Table, label: string): HTMLElement {
  const numeric = t.columns.map((_, i) => t.rows.some((r) => typeof r[i] === 'number'))
  return h('div', { class: 'data', tabindex: 0, role: 'region', 'aria-label': `Data of ${label}` },
    h('table', {},
      h('thead', {}, h('tr', {}, t.columns.map((c, i) => h('th', { scope: 'col', class: numeric[i] ? 'num' : '' }, c)))),
      h('tbody', {}, t.rows.slice(0, shownRows).map((r) => h('tr', {}, r.map((v, i) => h('td', { class: numeric[i] ? 'num' : '' }, v)))))),
    t.rows.length > shownRows ? h('p', { class: 'muted' }, `The first ${shownRows} of ${t.rows.length} rows; the CSV file has all.`) : null)
}

const waiting = new Map<Element, () => void>()
const seen = typeof IntersectionObserver === 'function'
  ? new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting) waiting.get(e.target)?.()
    }, { rootMargin: '400px' })
  : undefined
const sized = typeof ResizeObserver === 'function'
  ? new ResizeObserver((entries) => {
      for (const e of entries) drawings.get(e.target)?.resize()
    })
  : undefined
const drawings = new Map<Element, ECharts>()

if (typeof addEventListener === 'function') {
  addEventListener('beforeprint', () => drawAll())
}

/** Caption is the common part of all figures. */
export interface Caption {
  title: string
  unit?: string
  describe: string
  table(): Table
}

export interface Frame {
  element: HTMLElement
  /** label updates the caption. */
  label(): void
}

/** figureOf wraps a drawing in a figure with caption, data and downloads. */
export function figureOf(plot: HTMLElement, caption: () => Caption, svg: () => string | undefined, keys: () => string): Frame {
  const title = h('span', { class: 'title' })
  const unit = h('span', { class: 'unit' })
  const data = h('div', { hidden: true })
  const toggle = h('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false', onclick: () => show(data.hidden) }, 'Data')
  const keepSVG = h('button', { type: 'button', class: 'quiet', onclick: () => save() }, 'SVG')
  const keepCSV = h('button',
    { type: 'button', class: 'quiet',
    onclick: () => download(fileName(caption().title, 'csv'), 'text/csv;charset=utf-8', csv(caption().table())) }, 'CSV')
  const element = h('figure', { class: 'chart' },
    h('figcaption', {}, title, unit, h('span', { class: 'tools' }, toggle, keepSVG, keepCSV)), plot, data)

  function show(open: boolean): void {
    data.hidden = !open
    toggle.setAttribute('aria-expanded', String(open))
    replace(data, open ? dataTable(caption().table(), caption().title) : null)
  }

  function save(): void {
    const text = svg()
    if (text) download(fileName(caption().title, 'svg'), 'image/svg+xml', text)
  }

  function label(): void {
    const c = caption()
    title.textContent = c.title
    unit.textContent = c.unit ?? ''
    plot.setAttribute('aria-label', `${c.title}. ${c.describe}${keys()}`)
    for (const [button, what] of [[toggle, 'Data of'], [keepSVG, 'Download SVG of'], [keepCSV, 'Download CSV of']] as const) {
      button.setAttribute('aria-label', `${what} ${c.title}`)
      button.title = `${what} ${c.title}`
    }
    if (!data.hidden) show(true)
  }

  label()
  return { element, label }
}

/** chart creates a figure that is drawn when it becomes visible. */
export function chart(first: Spec): Chart {
  let spec = first
  let drawing: ECharts | undefined
  let at = -1
  const plot = h('div', { class: 'plot', role: 'img', tabindex: 0 })
  const size = () => { plot.style.height = `${spec.height ?? 260}px` }
  const { element, label } = figureOf(plot, () => spec,
    () => { draw(); return drawing?.renderToSVGString() },
    () => (spec.points ? ' Left and right arrow keys move along it.' : ''))

  function draw(): void {
    if (drawing) return
    waiting.delete(plot)
    seen?.unobserve(plot)
    drawing = init(plot, null, { renderer: 'svg', ...(plot.clientWidth ? {} : { width: 800, height: spec.height ?? 260 }) })
    drawings.set(plot, drawing)
    drawing.setOption(spec.option(theme()), true)
    sized?.observe(plot)
    spec.ready?.(drawing)
  }

  function move(to: number): void {
    draw()
    const last = (spec.points ?? 0) - 1
    at = Math.max(0, Math.min(last, to))
    drawing?.dispatchAction({ type: 'showTip', seriesIndex: 0, dataIndex: at })
    spec.moved?.(at)
  }

  plot.addEventListener('keydown', (e) => {
    if (!spec.points) return
    const step = e.shiftKey ? 10 : 1
    const to = { ArrowLeft: at - step, ArrowRight: at + step, Home: 0, End: spec.points - 1 }[e.key]
    if (to !== undefined) {
      e.preventDefault()
      move(to)
    } else if (e.key === 'Escape') drawing?.dispatchAction({ type: 'hideTip' })
  })
  plot.addEventListener('blur', () => drawing?.dispatchAction({ type: 'hideTip' }))

  size()
  waiting.set(plot, draw)
  if (seen) seen.observe(plot)
  else queueMicrotask(draw)
  const stop = onTheme(() => drawing?.setOption(spec.option(theme()), true))

  return {
    element,
    draw,
    label,
    instance: () => drawing,
    update(next) {
      spec = next
      at = -1
      size()
      label()
      drawing?.setOption(spec.option(theme()), true)
    },
    dispose() {
      stop()
      waiting.delete(plot)
      drawings.delete(plot)
      seen?.unobserve(plot)
      sized?.unobserve(plot)
      drawing?.dispose()
    },
  }
}

/** drawAll draws all charts at once, for printing and screenshots. */
export function drawAll(): void {
  for (const draw of [...waiting.values()]) draw()
}

/** tip is the content of a tooltip: a title, then a line for each series. */
export function tip(head: string, lines: { colour?: string; name: string; value: string }[], foot?: string): HTMLElement {
  return h('div', { class: 'tip' }, h('b', {}, head),
    h('table', {}, h('tbody', {}, lines.map((l) => h('tr', {},
      h('td', {}, l.colour ? swatch(l.colour) : null, l.name), h('td', {}, l.value))))),
    foot ? h('span', {}, foot) : null)
}

/** swatch is a coloured mark before a name. */
export function swatch(colour: string): HTMLElement {
  const e = h('span', { class: 'swatch' })
  e.style.background = colour
  return e
}

/** frame is the base of the option of every chart. */
export function frame(t: Theme): Option {
  return {
    animation: false,
    backgroundColor: 'transparent',
    color: t.series,
    textStyle: { fontFamily: 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif', color: t.text },
    grid: { left: 64, right: 16, top: 30, bottom: 30 },
    tooltip: tooltipStyle(t),
    legend: legendStyle(t),
  }
}

/** tooltipStyle is the style of tooltips. */
export function tooltipStyle(t: Theme): Record<string, unknown> {
  return {
    backgroundColor: t.surface, borderColor: t.line, borderWidth: 1, padding: [6, 10], textStyle: { color: t.text, fontSize: 12.5 },
    confine: true, transitionDuration: 0, extraCssText: 'box-shadow:0 3px 12px rgba(0,0,0,.18);border-radius:6px;',
  }
}

/** legendStyle is the style of legends. */
export function legendStyle(t: Theme): Record<string, unknown> {
  return {
    top: 0, left: 4, type: 'plain', icon: 'roundRect', itemWidth: 12, itemHeight: 8, itemGap: 14,
    textStyle: { color: t.muted, fontSize: 12 }, inactiveColor: t.line,
  }
}

/** axisStyle is the style of axes. */
export function axisStyle(t: Theme): Record<string, unknown> {
  return {
    axisLine: { lineStyle: { color: t.line } }, axisTick: { lineStyle: { color: t.line } },
    axisLabel: { color: t.muted, fontSize: 11.5, hideOverlap: true }, splitLine: { lineStyle: { color: t.faint } },
    nameTextStyle: { color: t.muted, fontSize: 11.5 },
  }
}
