/* The current page is in view in the sidebar, and a click shows a picture alone. */
const showPlace = () =>
  document.querySelector(".sidebar-tree .current-page > .reference")?.scrollIntoView({ block: "nearest" });
addEventListener("load", () => setTimeout(showPlace)); // after the style sheets, and after the theme's scripts
addEventListener("DOMContentLoaded", () => {
  showPlace();
  for (const picture of document.querySelectorAll("article img")) {
    const link = document.createElement("a");
    link.href = picture.src;
    link.title = "enlarge";
    picture.replaceWith(link);
    link.append(picture);
  }
});
