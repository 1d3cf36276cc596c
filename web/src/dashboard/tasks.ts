// The tasks of a run on an engine.
import { plural } from '../format/format'
import { h } from '../ui/dom'
import type { Tasks } from '../go/live'

/** summary counts the tasks by state. */
export function summary(t: Tasks): string {
  const parts = [`${t.running} running`, `${t.waiting} waiting`, `${t.done} done`]
  if (t.suspect) parts.push(`${plural(t.suspect, 'trial')} suspect`)
  if (t.failed) parts.push(`${plural(t.failed, 'trial')} failed`)
  if (t.lost) parts.push(`${t.lost} lost`)
  if (t.left_s) parts.push(`about ${Math.max(1, Math.round(t.left_s / 60))} min left`)
  return `Tasks at ${t.on}: ${parts.join(', ')}.`
}

/** tasksCard lists running tasks and recent failures. */
export function tasksCard(t: Tasks | undefined): HTMLElement | null {
  if (!t) return null
  return h('section', { class: 'card', 'aria-label': 'Tasks' }, h('h2', {}, 'Tasks'), h('p', {}, summary(t)),
    t.at.length ? h('ul', { class: 'results' }, t.at.map((x) => h('li', {}, `Trial ${x.trials.join(', ')} on ${x.where}`))) : null,
    t.troubles.length ? h('ul', { class: 'results' },
      t.troubles.slice(-10).reverse().map((x) =>
      h('li', {}, `Task ${x.task} ${x.state}${x.where ? ` on ${x.where}` : ''}: ${x.why}${x.again ? '' : '; given up'}`))) : null)
}
