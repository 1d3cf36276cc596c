// Made by "make docs" from the types of internal/record/metric.

/** Unit is the unit of a metric. */
export type Unit = (typeof everyUnit)[number]
export const everyUnit = ['', '/s', 's', '%', 'B', 'cores'] as const
