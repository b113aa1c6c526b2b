/* The current page is in view in the sidebar, and a click shows a picture alone. */
addEventListener("DOMContentLoaded", () => {
  const current = document.querySelector(".sidebar-tree .current-page > .reference");
  current?.scrollIntoView({ block: "nearest" });
  for (const picture of document.querySelectorAll("article img")) {
    const link = document.createElement("a");
    link.href = picture.src;
    link.title = "enlarge";
    picture.replaceWith(link);
    link.append(picture);
  }
});
