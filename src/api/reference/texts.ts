// A text of the API reference in both languages, and how it stands in the document: English where OpenAPI has its place,
// Bengali beside it as `x-description-bn` or `x-summary-bn`.

export type Text = readonly [en: string, bn: string]

export const described = (...[en, bn]: Text) => ({ description: en, 'x-description-bn': bn })

export const summed = (...[en, bn]: Text) => ({ summary: en, 'x-summary-bn': bn })
