// Without it the names of settings with equal results would be drawn on top of each other.

import t from 'tap'
import { pointLabels } from '../../../../tools/load/report/page/point-labels.js'

const style = { widthOf: (text: string) => text.length * 6, size: 12, gap: 9, right: 300 }

t.test('points in one place share a label, to the right of it', async t => {
  const points = [
    { name: '1 ★', x: 50, y: 40 },
    { name: '2', x: 200, y: 40 },
    { name: '3', x: 52, y: 41 },
  ]
  t.strictSame(pointLabels(points, style), [
    { text: '1 ★, 3', x: 59, y: 40 },
    { text: '2', x: 209, y: 40 },
  ])
})

t.test('a label moves to another side for a neighbour, and at the end of the canvas', async t => {
  const points = [
    { name: 'left', x: 50, y: 40 },
    { name: 'right', x: 65, y: 40 },
    { name: 'last', x: 290, y: 90 },
  ]
  const [left, right, last] = pointLabels(points, style)
  t.strictSame(left, { text: 'left', x: 17, y: 40 }, 'the neighbour is where its label would be')
  t.strictSame(right, { text: 'right', x: 74, y: 40 })
  t.strictSame(last, { text: 'last', x: 257, y: 90 })
})

t.test('in a crowd the usual side is kept', async t => {
  const crowd = [-15, 0, 15].flatMap(dx =>
    [-12, 0, 12].map(dy => ({ name: `${dx} ${dy}`, x: 150 + dx, y: 100 + dy })),
  )
  t.equal(pointLabels(crowd, style).length, 9)
})
