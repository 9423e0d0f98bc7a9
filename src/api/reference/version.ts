// The version of the API as consumers see it. It moves apart from the product's: docs/api.md says with what.

export const apiVersion = '1.2.0'
