import { expect, test } from 'vitest'
import type { Tasks } from '../go/live'
import { apply, empty } from './model'
import { summary, tasksCard } from './tasks'

const tasks: Tasks = {
  on: 'slurm:lab', waiting: 4, running: 1, done: 2, suspect: 1, failed: 0, lost: 1, left_s: 130,
  at: [{ task: 3, trials: [5, 6], where: 'node2', since: '' }],
  troubles: [{ task: 2, state: 'preempted', where: 'node1', why: '<b>more urgent</b>', at: '', again: true }],
}

test('tasks are counted, and what is 0 is not told', () => {
  expect(summary(tasks)).toBe('Tasks at slurm:lab: 1 running, 4 waiting, 2 done, 1 trial suspect, 1 lost, about 2 min left.')
})

test('a message puts tasks on the page, as text', () => {
  const card = tasksCard(apply(empty(), 'tasks', tasks).state.tasks)
  expect(card?.textContent).toContain('Trial 5, 6 on node2')
  expect(card?.textContent).toContain('Task 2 preempted on node1: <b>more urgent</b>')
  expect(tasksCard(empty().state.tasks)).toBeNull()
})
