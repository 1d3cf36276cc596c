import '../ui/base.css'
import './report.css'
import { drawAll } from '../charts/chart'
import type { Report as Comparison } from '../go/compare'
import type { Run } from '../go/webdata'
import { pairs } from '../charts/pairs'
import { hasComparison, readComparison, readRun } from '../data/load'
import { h, replace } from '../ui/dom'
import { startTheme, toggleTheme } from '../ui/theme'
import { compare } from './compare'
import { fidelity, recovery, reproduce } from './evidence'
import { badge, overview } from './overview'
import { trials } from './trial'

/** firstShown returns the initial trial: that of a highlight, else the first with data. */
export function firstShown(run: Run): number | undefined {
  const highlighted = run.highlights?.find((x) => x.trial)?.trial
  return highlighted ?? (run.trials.find((t) => t.detail) ?? run.trials[0])?.id
}

function show(run: Run, app: HTMLElement): void {
  const shown = trials(run)
  const open = (id: number) => {
    shown.open(id).then(() => document.getElementById('trial')?.scrollIntoView(), () => undefined)
  }
  const sections: [string, HTMLElement | null][] = [
    ['Overview', overview(run, open)], ['Comparison', compare(run)], ['Trials', run.trials.length ? shown.element : null],
    ['Recovery', recovery(run, open)], ['Fidelity', fidelity(run, open)], ['Reproduce', reproduce(run)],
  ]
  const there = sections.flatMap(([name, e]) => (e ? [{ name, e }] : []))
  const links = new Map(there.map(({ name, e }) => [e, h('a', { href: `#${e.id}` }, name)]))
  const started = new Date(run.started)
  replace(app, h('div', { class: 'page' },
    h('a', { class: 'skip', href: '#overview' }, 'Skip to the results'),
    h('header', { class: 'top' },
      h('div', { class: 'line' }, h('span', { class: 'brand' }, 'Skerry report'), h('span', { class: 'tools no-print' },
        h('button', { type: 'button', onclick: toggleTheme }, 'Light / dark'),
        h('button', { type: 'button', onclick: () => print() }, 'Print'))),
      h('div', { class: 'line' }, h('h1', {}, run.name), badge(run.state)),
      run.description ? h('p', { class: 'lead' }, run.description) : null,
      h('p', { class: 'meta' }, [
        started.toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }) + ' UTC',
        ...run.fixed.map((a) => `${a.label} ${a.values[0] ?? ''}`)].join(' · '))),
    h('nav', { class: 'sections', 'aria-label': 'Sections' }, [...links.values()]),
    h('main', {}, there.map(({ e }) => e)),
    h('footer', { class: 'end' }, `Created by Skerry from ${run.directory}. This file is self-contained.`)))
  mark(links)
  const first = firstShown(run)
  if (first !== undefined) {
    shown.open(first).then(() => {
      if (location.hash === '#picture') drawAll()
      document.documentElement.dataset['ready'] = 'yes'
    }, () => undefined)
  } else document.documentElement.dataset['ready'] = 'yes'
}

function showComparison(c: Comparison, app: HTMLElement): void {
  const shown = pairs(c, (run) => h('b', {}, run))
  replace(app, h('main', { class: 'page' }, h('header', { class: 'top' },
    h('div', { class: 'line' }, h('h1', {}, 'Comparison'), h('span', { class: 'tools no-print' },
      h('button', { type: 'button', onclick: toggleTheme }, 'Light / dark'),
      h('button', { type: 'button', onclick: () => print() }, 'Print')))),
    h('div', { class: 'stack' }, shown.elements)))
  if (location.hash === '#picture') drawAll()
  document.documentElement.dataset['ready'] = 'yes'
}

/** mark highlights the visible section in the navigation. */
function mark(links: Map<HTMLElement, HTMLElement>): void {
  if (typeof IntersectionObserver !== 'function') return
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const link = links.get(e.target as HTMLElement)
      if (e.isIntersecting) link?.setAttribute('aria-current', 'true')
      else link?.removeAttribute('aria-current')
    }
  }, { rootMargin: '-30% 0px -60% 0px' })
  for (const e of links.keys()) seen.observe(e)
}

startTheme()
const app = document.getElementById('app')!
const shown = hasComparison() ? readComparison().then((c) => showComparison(c, app)) : readRun().then((run) => show(run, app))
shown.catch((e: unknown) => {
  replace(app, h('main', { class: 'page' }, h('h1', {}, 'This report cannot be shown'),
    h('p', { class: 'note bad' }, `${e instanceof Error ? e.message : String(e)}. Recreate it with skerry report or skerry compare.`)))
})
