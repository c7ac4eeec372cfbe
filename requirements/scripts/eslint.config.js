import js from "@eslint/js";

// What browsers have, as far as the scripts use it; TypeScript knows it all, and knows names that do not exist.
export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-restricted-properties": [
        "error",
        { property: "outerHTML", message: "Make elements and set their text." },
        { object: "document", property: "write", message: "Make elements and set their text." },
      ],
    },
  },
];
